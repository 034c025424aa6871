"""EMA copied before the wrap.

## What it does
Finds a copy of the model (`deepcopy`, `AveragedModel`, an EMA class) that is made before the model
is wrapped in DDP, while each rank has weights of its own: neither seeded alike nor loaded. And
weights that some ranks alone average, where all ranks train on, or load what came of it.

## Why is this bad?
DDP broadcasts rank 0's weights when it is built. A copy made earlier keeps this rank's own random
start, so that the average differs between ranks.

## Example
```python
ema = copy.deepcopy(net)
model = DDP(net)
```

## Use instead
```python
model = DDP(net)
ema = copy.deepcopy(model.module)
```
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Choice, Event, Exit, Way, events
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    NOTHING,
    Place,
    Ref,
    Term,
    Value,
    What,
    has_identity,
)
from ddpdoctor.lint.engine.queries.doing import around, between, doers, keeps_apart
from ddpdoctor.lint.engine.queries.order import called_beside, is_after
from ddpdoctor.lint.engine.queries.sharding import loops
from ddpdoctor.lint.engine.queries.wrapping import mentioned, weights_in, wrappers
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP506", name="ema-before-wrap", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield copies that are made while each rank has weights of its own."""
    wraps = list(events(run.root, "wrap"))
    order = {id(each): number for number, (each, _) in enumerate(events(run.root))}
    for copy, at in events(run.root, "copy", "average") if wraps else ():
        source = copy.values.get("object")
        if source is None or not doers(at).mask & ~1:
            continue  # rank 0 is the source of DDP's broadcast
        for wrap, to in wraps:
            module = wrap.values.get("module")
            later = order[id(wrap)] > order[id(copy)]
            if module is None or module.what != source.what or not later:
                continue
            if _is_a_trial(run, copy, at, wrap, to):
                continue
            if _is_each_ranks_own(run, source, copy) and not _is_given_anew(run, copy, to):
                node, path = _call_beside(at, to) or (copy.node, copy.path)
                yield Hit(
                    node,
                    "the average is copied before DDP has made the ranks' weights alike",
                    notes=(Related.at(wrap.place, "the model is wrapped"),),
                    help="build it after the wrap, from the wrapper's `.module`",
                    path=path,
                )
            break
    yield from _averaged_by_some(run, order)


def _is_a_trial(run: Run, copy: Event, at: Way, wrap: Event, to: Way) -> bool:
    """Whether a copy is gone when the model is wrapped: with it something was tried, as its cost.

    That is where the call in which it is made hands nothing out that holds it.
    """
    made, called = copy.values.get("result"), called_beside(at, to)
    if made is None or called is None or not has_identity(made.what):
        return False
    within = {each.values["object"].what for each, _ in events(called.body, "make")}
    holders: set[What] = {made.what}
    held = run.vm.store.held()
    size = 0
    while size < len(holders):
        size = len(holders)
        new = {ref for ref, names in held.items() if _mentions(run, names.values(), holders)}
        if any(ref not in within and run.vm.objects[ref.number].cls >= 0 for ref in new):
            return False
        holders |= new
    later = itertools.dropwhile(lambda each: each[0] is not wrap, events(run.root))
    given = (each.value for each in called.body.items if isinstance(each, Exit) and each.value)
    return not _mentions(run, given, holders) and not any(
        _mentions(run, event.values.values(), holders) for event, _ in later
    )


def _mentions(run: Run, values: Iterable[Value], wanted: set[What]) -> bool:
    return any(each.what in wanted or wanted & mentioned(run, each) for each in values)


def _averaged_by_some(run: Run, order: dict[int, int]) -> Iterator[Hit]:
    """Weights that some ranks alone change, and that all ranks train on, or load into a model."""
    shared = {
        each
        for event, _ in events(run.root, "collective")
        if event.name in ("broadcast", "broadcast_object_list", "all_reduce")
        for value in event.values.values()
        for each in mentioned(run, value)
    }
    trained = {loop for _, way in events(run.root, "backward") for loop in loops(way)}
    wraps = wrappers(run)
    loads = [
        (event, way)
        for event, way in events(run.root, "load_state")
        if "state" in event.values and not doers(way).some
    ]
    forwards: dict[What, list[Event]] = {}
    for event, way in events(run.root, "bare_forward"):
        if doers(way).mask == EVERYONE:
            forwards.setdefault(event.values["model"].what, []).append(event)
    told: set[int] = set()
    for change, way in events(run.root, "change"):
        who = doers(way)
        apart = keeps_apart(who.choices[::-1]) if who.some else None  # the outermost
        taught = [each for each in loops(way) if each in trained]
        weights = weights_in(change.values["object"])
        if apart is None or id(apart) in told or not taught:
            continue
        if weights is None or weights in shared:
            continue
        if _are_put_back(run, weights, apart):
            continue
        uses = [
            (load, between(way, to) if order[id(load)] > order[id(change)] else ())
            for load, to in loads
            if weights in mentioned(run, load.values["state"])
        ]
        uses += [(each, ()) for each in forwards.get(weights, ())]
        wrap = wraps.get(weights)
        if wrap is not None and order[id(wrap)] < order[id(change)]:
            uses.append((wrap, around(taught[-1], way, way)))
        used = next((use for use, past in uses if not _is_loaded(run, weights, past)), None)
        if used is not None:
            told.add(id(apart))
            yield Hit(
                apart.test,
                "some ranks alone change these weights, and all ranks go on with them",
                notes=(
                    Related.at(change.place, "they are changed"),
                    Related.at(used.place, "all ranks have them here"),
                    *_decorated(run, way),
                ),
                help="change them on every rank, or broadcast them afterwards",
                path=apart.path,
            )


def _are_put_back(run: Run, weights: What, apart: Choice) -> bool:
    """Whether those who change the weights have copied them before, and put them back at last."""
    there = [
        event
        for event, way in events(run.root, "copy", "change")
        if any(step.node is apart for step in way)
    ]
    changes = [
        number
        for number, each in enumerate(there)
        if each.kind == "change" and weights_in(each.values["object"]) == weights
    ]
    if len(changes) < 2:
        return False
    is_kept = any(each.kind == "copy" for each in there[: changes[0]])
    last = there[changes[-1]].values.get("given")
    return is_kept and last is not None and _is_taken_from(last.what, weights)


def _is_taken_from(what: What, weights: What) -> bool:
    """Whether it is some of these weights as they are or were, and nothing computed of them."""
    while isinstance(what, Term) and what.op in ("of", "element", "copied", "detached"):
        what = what.args[0]
    return isinstance(what, Term) and what.op == "lib" and weights in what.args


def _decorated(run: Run, way: Way) -> Iterator[Related]:
    """The function that was handed to who lets some ranks alone run it."""
    called = next((s.node for s in way if isinstance(s.node, Called) and s.node.handed_in), None)
    for info in run.vm.visited.values() if called is not None else ():
        if called is not None and info.name == called.name:
            place = Place(info.module.path, info.node.lineno)
            yield Related.at(place, f"some ranks alone run {info.name}()")


def _is_loaded(run: Run, weights: What, done: Iterable[Event]) -> bool:
    """Whether every rank is given these weights anew, the same ones and not its own."""
    return any(
        each.kind == "load_state"
        and each.values["object"].what == weights
        and not each.values["state"].agree.divergent
        and weights not in mentioned(run, each.values["state"])
        for each in done
    )


def _is_each_ranks_own(run: Run, source: Value, copy: Event) -> bool:
    """Whether the ranks have drawn weights of their own, and loaded none."""
    seeds: list[bool] = []
    for event, _ in events(run.root, "seed", "seed_all", "load_state", "copy", "average"):
        if event is copy:
            break
        target, seed = event.values.get("object"), event.values.get("seed")
        if event.kind == "load_state" and target is not None and target.what == source.what:
            return False
        if seed is not None and event.kind in ("seed", "seed_all"):
            seeds.append(seed.agree.divergent)
    if seeds:
        return seeds[-1] and source.what != NOTHING
    if run.is_entry:
        return isinstance(source.what, Ref)
    text = run.source(copy.path)
    is_given = isinstance(source.what, Ref) or (
        isinstance(source.what, Term) and source.what.op == "parameter"
    )
    return is_given and text is not None and "seed" not in text.source.text


def _is_given_anew(run: Run, copy: Event, wrap: Way) -> bool:
    """Whether the copy is surely given other weights after the wrap, and keeps nothing of its own.

    As by an update whose decay is zero.
    """
    made = copy.values.get("result")
    if made is None:
        return False
    beside = [step.node for step in wrap]
    for event, way in events(run.root, "change", "load_state"):
        is_sure = all(
            not isinstance(step.node, Choice) or any(step.node is each for each in beside)
            for step in way
        )
        if not is_sure or not is_after(wrap, way) or doers(way).some:
            continue
        target = event.values["object"]
        if event.kind == "load_state" and target.what == made.what:
            return not event.values["state"].agree.divergent
        if weights_in(target) == made.what and _keeps_nothing(event):
            return True
    return False


def _keeps_nothing(change: Event) -> bool:
    """Whether nothing is left of what a tensor held."""
    given = change.values.get("given")
    return change.name == "copy_" or (
        change.name == "mul_" and given is not None and given.is_const(0, 0.0)
    )


def _call_beside(at: Way, to: Way) -> tuple[ast.AST, str] | None:
    """The call that leads to the copy, where the wrap stands beside it."""
    called = called_beside(at, to)
    return (called.node, called.path) if called is not None else None
