"""No set_epoch anywhere.

## What it does
Finds a shuffling `DistributedSampler` whose loader is run through epoch after epoch while training,
and that nobody tells the epoch, or some ranks alone, or that is told one alone, before the loop.

## Why is this bad?
The sampler shuffles with `seed + epoch`, and the epoch stays 0: every epoch has the same order.
Where it stays 0 on some ranks, each takes its part of another order: samples are read twice, others
never.

## Example
```python
for epoch in range(epochs):
    for batch in loader:
        ...
```

## Use instead
```python
for epoch in range(epochs):
    sampler.set_epoch(epoch)
    for batch in loader:
        ...
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.objects import members
from ddpdoctor.lint.engine.interpreter.objects.hierarchy import bases, class_attribute
from ddpdoctor.lint.engine.interpreter.objects.members import OF_LOADER
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Choice, Event, Loop, Way, events
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    Const,
    Func,
    Lib,
    ModuleRef,
    Ref,
    Tensor,
    Term,
    Value,
)
from ddpdoctor.lint.engine.queries.doing import doers, keeps_apart
from ddpdoctor.lint.engine.queries.sharding import (
    LOADER,
    SAMPLER,
    Pass,
    begun_again,
    made,
    numbers,
    passes,
    shards,
    shuffles,
    trained_on,
)
from ddpdoctor.lint.rule import About, Edit, Fix, Hit, Related

ABOUT = About(code="DDP203", name="missing-set-epoch", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield training samplers that shuffle alike in every epoch."""
    samplers, loaders = made(run, SAMPLER), shards(run)
    told = _told(run)
    if told is None:
        return
    done: set[int] = set()
    refilled = list(begun_again(run))
    for each in (*passes(run), *refilled):
        kept = each in refilled and not _is_begun_in_every(each.way, each.outer[-1])
        for loader in each.loaders & loaders.keys():
            sampler = loaders[loader]
            again = [loop for loop in each.outer if loop.rounds != 1]
            if sampler in done or not again or not each.trains:
                continue
            if not shuffles(samplers, sampler):
                continue
            if sampler in told:
                if (once := _told_once(run, sampler)) is not None:
                    done.add(sampler)
                    yield _told_before(once, each)
                continue
            done.add(sampler)
            made_by = samplers[sampler]
            if _is_sent_anew(made_by, again[0]):
                continue
            yield Hit(
                made_by.node,
                "nothing calls set_epoch() on this sampler: every epoch has the same order",
                notes=(_over(each), *_asked_in_vain(again[0])),
                help="`sampler.set_epoch(rounds)` where the loader is begun anew"
                if kept
                else "`sampler.set_epoch(epoch)` as the first line of the epoch loop",
                fix=None if kept else _fix(run, made_by, again[0]),
                path=made_by.path,
            )
    yield from _handed_out_again(run, told | done)
    yield from _own(run, told)
    yield from _told_to_some(run, samplers)


def _is_sent_anew(sampler: Event, epochs: Loop) -> bool:
    """Whether each epoch has a sampler of its own, for a set that a rank has sent in it.

    Who sends a set once more has made another, and may have shuffled it.
    """
    of = sampler.values.get("dataset")
    is_sent = any("broadcast" in event.name for event, _ in events(epochs.body, "collective"))
    is_new = any(event is sampler for event, _ in events(epochs.body, "new"))
    return is_new and is_sent and of is not None and isinstance(of.what, Tensor)


def _handed_out_again(run: Run, told: set[int]) -> Iterator[Hit]:
    """Yield samplers whose first epoch is kept, and trained on over and over."""
    samplers, loaders = made(run, SAMPLER), shards(run)
    for event, _ in events(run.root, "begin"):
        over = numbers(event.values["over"]) if event.name == "cycle" else set()
        for loader in over & loaders.keys() & trained_on(run):
            sampler = loaders[loader]
            if sampler in told or not shuffles(samplers, sampler):
                continue
            told = told | {sampler}
            yield Hit(
                samplers[sampler].node,
                "its loader is begun once: every epoch has the batches of the first again",
                notes=(Related.at(event.place, "cycle() keeps what came first"),),
                help="`sampler.set_epoch(rounds)`, and a new iterator, where the loader has ended",
                path=samplers[sampler].path,
            )


def _told_once(run: Run, sampler: int) -> Event | None:
    """The one call that tells a sampler the epoch, where no loop comes by it again."""
    calls = [
        (event, way)
        for event, way in events(run.root, "set_epoch")
        if not (known := numbers(event.values.get("object"))) or sampler in known
    ]
    if len(calls) != 1:
        return None
    ((event, way),) = calls
    if not numbers(event.values.get("object")) or any(isinstance(x.node, Loop) for x in way):
        return None
    return event


def _told_before(once: Event, each: Pass) -> Hit:
    return Hit(
        once.node,
        "the sampler is told one epoch, before the first: all have the same order",
        notes=(_over(each),),
        help="`sampler.set_epoch(epoch)` as the first line of the epoch loop",
        path=once.path,
    )


def _is_begun_in_every(way: Way, loop: Loop) -> bool:
    """Whether each round of a loop comes by what stands at the end of a way in it."""
    for step in reversed(way):
        if step.node is loop:
            return True
        if isinstance(step.node, Choice):
            return False
    return False


def _told_to_some(run: Run, samplers: dict[int, Event]) -> Iterator[Hit]:
    """Samplers that some ranks alone tell the epoch: each shuffles another order to deal out."""
    told: dict[int, int] = {}
    calls: dict[int, tuple[Event, Choice]] = {}
    for event, way in events(run.root, "set_epoch"):
        who = doers(way)
        apart = keeps_apart(who.choices) if who.some else None
        for number in numbers(event.values.get("object") or event.values.get("sampler")):
            told[number] = told.get(number, 0) | who.mask
            if apart is not None:
                calls.setdefault(number, (event, apart))
    trained = {number for each in passes(run) if each.trains for number in each.loaders}
    dealt = {sampler for loader, sampler in shards(run).items() if loader in trained}
    for number, (event, apart) in calls.items():
        if number in dealt and told[number] != EVERYONE and shuffles(samplers, number):
            yield Hit(
                event.node,
                "some ranks alone tell the sampler the epoch: the ranks' parts overlap",
                notes=(
                    Related.at(apart.place, "it decides"),
                    Related.at(samplers[number].place, "it shuffles by the epoch"),
                ),
                why=apart.condition.why,
                help="call set_epoch() on every rank",
                path=event.path,
            )


def _asked_in_vain(epochs: Loop) -> Iterator[Related]:
    """Where somebody looks for `set_epoch` in something else than the sampler."""
    for event, _ in events(epochs.body, "lacks"):
        yield Related.at(event.place, "set_epoch is looked for here, where it never is")


def _own(run: Run, told: set[int]) -> Iterator[Hit]:
    """Yield samplers of the user's that draw the order from one seed in every epoch."""
    loaders = made(run, LOADER)
    for each in passes(run):
        again = [loop for loop in each.outer if loop.rounds != 1]
        for loader in (loaders[number] for number in each.loaders & loaders.keys()):
            given = [loader.values.get(role) for role in ("sampler", "batch_sampler")]
            mine = [value for value in given if value is not None and _is_of_the_user(run, value)]
            if not again or not each.trains or not mine or numbers(mine[0]) & told:
                continue
            seed = _fixed_seed(run, mine[0], again[-1])
            if seed is None:
                continue
            by = [
                event for event, _ in events(run.root, "make") if event.values["object"] == mine[0]
            ]
            lacking = [
                event
                for event, _ in events(again[-1].body, "lacks")
                if _is_own_sampler(run, event.values["object"], loader)
            ]
            place = (lacking or by or [loader])[0]
            told |= numbers(mine[0])
            yield Hit(
                place.node,
                "this is never true: the loader's order comes from another sampler, which nobody "
                "tells the epoch, so that every epoch has the same order"
                if lacking
                else "this sampler draws from one seed in every epoch: all have the same order",
                notes=(Related.at(seed.place, "it is seeded"), _over(each)),
                help="`set_epoch(epoch)` on the sampler that shuffles, which adds it to the seed",
                path=place.path,
            )


def _is_own_sampler(run: Run, sampler: Value, loader: Event) -> bool:
    """Whether it is what a loader has made for itself, beside the sampler that it was given."""
    of = run.vm.store.get((sampler.what, OF_LOADER))
    return of is not None and of.what == loader.values["object"].what


def _is_of_the_user(run: Run, value: Value) -> bool:
    made_by = run.vm.object(value)
    return made_by is not None and made_by.cls >= 0


def _fixed_seed(run: Run, sampler: Value, epochs: Loop) -> Event | None:
    """What seeds the generator of a pass through a sampler, if that is the same in every pass."""
    made_by = run.vm.object(sampler)
    assert made_by is not None
    names = {f"{run.vm.classes[each].name}.__iter__" for each in bases(run.vm, made_by.cls)}
    for seed, way in events(epochs.body, "seed_generator", "new"):
        inside = [step.node for step in way if isinstance(step.node, Called)]
        one = next((each for each in inside if each.name in names), None)
        generator, number = seed.values.get("object"), seed.values.get("seed")
        if one is None or generator is None or number is None:
            continue
        if not _is_fixed(number.what, _given(run, made_by.cls)):
            continue
        made_here = any(e.values["object"] == generator for e, _ in events(one.body, "new"))
        if made_here and any(_draws_from(e, generator) for e, _ in events(one.body, *_DRAWS)):
            return seed
    return None


_DRAWS = ("draw", "draw_own")


def _draws_from(draw: Event, generator: Value) -> bool:
    return generator in (draw.values.get("generator"), draw.values.get("object"))


def _given(run: Run, cls: int) -> int:
    """The initialiser of a class, by which what it is given is known; 0 where it has none."""
    init = class_attribute(run.vm, cls, "__init__")
    init = (run.vm.store.get((init.what, "__wrapped__")) or init) if init is not None else None
    if init is None or not isinstance(init.what, Func):
        return 0
    return id(run.vm.functions[init.what.number].node)


def _is_fixed(what: object, given: int) -> bool:
    """Whether it is written so, an option, or what the sampler was made with."""
    if isinstance(what, Term):
        fixed = what.op in ("Add", "Sub", "Mult") and all(_is_fixed(x, given) for x in what.args)
        was_given = what.op == "parameter" and what.args[:1] == (given,)
        is_option = what.op == "option" or (what.op == "of" and isinstance(what.args[0], Ref))
        return fixed or was_given or is_option
    return isinstance(what, Const)


def _over(each: Pass) -> Related:
    return Related.at(each.event.place, "its loader is run through again and again")


def _fix(run: Run, made_by: Event, epochs: Loop) -> Fix | None:
    """The line at the top of the epoch loop, where the sampler has a name in the same function."""
    source, loop = run.source(made_by.path), epochs.node
    if source is None or epochs.path != made_by.path or not isinstance(loop, ast.For):
        return None
    holder = source.function(made_by.node) or source.tree
    if holder is not (source.function(loop) or source.tree):
        return None
    if not isinstance(loop.target, ast.Name):
        return None
    for node in ast.walk(holder):
        if isinstance(node, ast.If | ast.IfExp) and _holds(node, made_by.node):
            return None  # it may not be there: then the line needs a condition too
    for node in ast.walk(holder):
        if isinstance(node, ast.Assign) and node.value is made_by.node:
            (target, *more) = node.targets
            if more or not isinstance(target, ast.Name):
                return None
            first = loop.body[0]
            line = f"{' ' * first.col_offset}{target.id}.set_epoch({loop.target.id})\n"
            return Fix((Edit((first.lineno, 0), (first.lineno, 0), line),))
    return None


def _holds(outer: ast.AST, node: ast.AST) -> bool:
    return any(each is node for each in ast.walk(outer))


def _told(run: Run) -> set[int] | None:
    """The samplers that are told the epoch; None where somebody is told, and nobody knows who.

    What comes of a call of which nothing is known can be none of the samplers that nobody has
    handed to such a call.
    """
    found: set[int] = set()
    for event, _ in events(run.root, "set_epoch"):
        known = numbers(event.values.get("object"))
        if not known and _is_made_elsewhere(event.values.get("sampler")):
            held = run.vm.store.held()
            known = {each for one in run.vm.handed for each in members.parts(held.get, Ref(one))}
        elif not known:
            return None
        found |= known
    return found


def _is_made_elsewhere(value: Value | None) -> bool:
    """Whether it comes of a call of something in a module, of which nothing else is known."""
    what: object = value.what if value is not None else None
    if not isinstance(what, Term) or what.op != "result":
        return False
    what = what.args[0]
    while isinstance(what, Term) and what.op in ("of", "item"):
        what = what.args[0]
    return isinstance(what, Lib | ModuleRef) or (isinstance(what, Term) and what.op == "global")
