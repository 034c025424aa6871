"""State that is restored on some ranks only.

## What it does
Finds checkpoints that one rank loads, and whose weights, optimizer or scheduler the others never
get; and checks of a file that is each rank's own, by which some ranks resume and others do not. As
information it tells where each rank asks its own disk for what some ranks alone have written: on
machines that share the folder that does no harm.

## Why is this bad?
DDP hands rank 0's weights to the others when it wraps, nothing else and not again. The optimizers'
moments, the learning rate and the epoch differ: the ranks part silently, or run different numbers
of steps. Where only some ranks take the way of a resume that communicates, the others hang.

## Example
```python
if rank == 0 and os.path.exists(path):
    state = torch.load(path, map_location="cpu")
    optimizer.load_state_dict(state["optimizer"])
```

## Use instead
```python
found = [os.path.exists(path) if rank == 0 else None]
dist.broadcast_object_list(found, src=0)
if found[0]:
    state = torch.load(path, map_location="cpu")
    optimizer.load_state_dict(state["optimizer"])
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.machine import BY_SOME, Made
from ddpdoctor.lint.engine.interpreter.objects import members
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.store import SET_BY_SOME
from ddpdoctor.lint.engine.interpreter.tree import (
    Called,
    Choice,
    Event,
    Exit,
    Loop,
    Node,
    Way,
    events,
    walk,
)
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    NONE,
    Agreement,
    Const,
    Ref,
    Term,
    Tuple,
    Value,
    What,
    Why,
    within,
)
from ddpdoctor.lint.engine.queries.asking import asked_by_each
from ddpdoctor.lint.engine.queries.doing import doers, is_distributed, is_the_starters, keeps_apart
from ddpdoctor.lint.engine.queries.naming import name_of
from ddpdoctor.lint.engine.queries.order import beyond, is_after
from ddpdoctor.lint.engine.queries.partings import Parting, partings
from ddpdoctor.lint.engine.queries.races import looks_of, restores
from ddpdoctor.lint.engine.queries.telling import how, operation
from ddpdoctor.lint.engine.queries.undoing import gives_back
from ddpdoctor.lint.engine.queries.wrapping import attributes, mentioned, origins, parts
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP513", name="resume-on-one-rank", confidence="likely")

_SHARED = ("disk", "order")
"""Of a path: what is found on a disk, or in the order of a listing, is there for all ranks."""
_OF_NUMBERS = ("tensor", "as_tensor", "Tensor")
_OBJECTS = ("broadcast_object_list", "all_gather_object", "scatter_object_list")


def check(run: Run) -> Iterator[Hit]:
    """Yield what some ranks restore, and what they decide by a file of their own."""
    if run.is_entry and not is_distributed(run):
        return
    yield from _restored_by_some(run)
    yield from _counted_from_there(run)
    yield from _asked_by_each(run)
    for parting in partings(run):
        if name_of(run, parting) != "DDP513":
            continue
        for look, way in looks_of(run, parting):
            path = look.values.get("path") or look.values.get("arg0")
            if path is not None and path.agree.divergent and path.agree.cause not in _SHARED:
                yield _decided_by_own_file(parting, look, path.agree)
            elif doers(way).some and restores(run) and not _fails_without_it(parting):
                yield _seen_by_some(run, parting, look, way)
            else:
                continue
            break


def _restored_by_some(run: Run) -> Iterator[Hit]:
    """Loads of state into what must be alike, by some ranks, with nothing shared afterwards."""
    order = {id(each): number for number, (each, _) in enumerate(events(run.root))}
    wraps = [event for event, _ in events(run.root, "wrap")]
    spreads = [event for event, _ in events(run.root, "wrap", "spread")]
    loads: list[tuple[Event, Way]] = list(events(run.root, "load"))
    told: set[int] = set()
    for event, way in events(run.root, "load_state"):
        who = doers(way)
        apart = keeps_apart(who.choices)
        if not who.some or apart is None or id(apart) in told:
            continue
        if _is_made_for_itself(run, event, who.mask) or _is_lent(run, event, who.mask):
            continue
        if gives_back(run, event, way):
            continue
        if run.is_entry and not _is_used_by_others(run, event, way, who.mask, order):
            continue
        if run.is_entry and _is_of_these(run, event, wraps, who.mask):
            continue
        if not run.is_entry and _is_set_elsewhere(event.values.get("object")):
            continue
        if _is_wrapped_later(run, event, spreads, order) or _is_shared_later(run, event, order):
            continue
        if _is_restored_again(run, event, way, order):
            continue
        if _is_restored_by_the_others(run, event, order):
            continue
        told.add(id(apart))
        call = _call_behind(apart, way)
        yield Hit(
            call.node if call else _loaded_there(loads, event, way) or event.node,
            "this state is restored on some ranks only: the others go on with their own",
            notes=(Related.at(apart.place, "only some ranks pass this condition"),),
            why=apart.condition.why,
            help="load on every rank, or broadcast what was loaded",
            confidence="certain"
            if who.sure and run.is_entry and not _are_objects_sent(run, event, order)
            else "likely",
            path=call.path if call else event.path,
        )


def _call_behind(apart: Choice, way: Way) -> Called | None:
    """The call behind a condition of the rank's that leads to what stands at the end of a way."""
    for number, step in enumerate(way):
        if step.node is apart or any(each is apart for each in step.seq.items[: step.index]):
            calls = [each.node for each in way[number:] if isinstance(each.node, Called)]
            return next((each for each in calls if each.node is not apart.node), None)
    return None


def _counted_from_there(run: Run) -> Iterator[Hit]:
    """Loads by some ranks from which all ranks take where their epochs begin."""
    if not any(True for _ in events(run.root, "wrap")):
        return
    is_seen_to_train = any(True for _ in events(run.root, "backward"))
    for loop, way in walk(run.root):
        if not isinstance(loop, Loop) or not _begins_apart(loop.count) or doers(way).some:
            continue
        if is_seen_to_train and not any(True for _ in events(loop.body, "backward")):
            continue
        for load, at in events(run.root, "load"):
            who = doers(at)
            if any(step.node is loop for step in at) or is_the_starters(at):
                continue
            sets = next((each for each in who.choices if _sets(each, loop.count.why)), None)
            if who.some and sets is not None:
                call = _call_behind(sets, at)
                yield Hit(
                    call.node if call else load.node,
                    "some ranks alone load where the epochs begin: the others begin elsewhere",
                    notes=(Related.at(loop.place, "all ranks count from it"),),
                    help="load on every rank, or broadcast what was loaded",
                    path=call.path if call else load.path,
                )


def _begins_apart(count: Value) -> bool:
    """Whether a loop counts from a number that ranks do not share."""
    what = count.what
    is_from = isinstance(what, Term) and what.op == "range" and len(what.args) > 1
    return is_from and count.agree.divergent and count.why is not None


def _sets(choice: Choice, why: Why | None) -> bool:
    """Whether a value is another on each rank because of this condition."""
    if why is not None and why.text == SET_BY_SOME:
        why = why.of
    if why is None or why.text != BY_SOME:
        return why == choice.condition.why
    return why.node is choice.test


def _loaded_there(loads: list[tuple[Event, Way]], event: Event, way: Way) -> ast.AST | None:
    """The load of the file, where it stands beside the restoring of what was loaded."""
    for load, there in loads:
        if load.path == event.path and there[-1].seq is way[-1].seq:
            return load.node
    return None


_MAKING = ("make", "new", "copy")


def _is_made_for_itself(run: Run, event: Event, mask: int) -> bool:
    """Whether what is restored was made by these ranks alone, as a model to predict with."""
    target = event.values.get("object")
    if target is None:
        return False
    makers: dict[What, int] = {}
    begun = [found for each in (*run.earlier, run) for found in events(each.root, *_MAKING)]
    for made, way in begun:
        own = made.values.get("result" if made.kind == "copy" else "object")
        if own is not None and isinstance(own.what, Ref | Term):
            makers.setdefault(own.what, doers(way).mask)
    if target.what in makers:
        return not makers[target.what] & ~mask
    if (alone := _called_by(run, target)) is not None:
        return not alone & ~mask
    options = _set_as(run, target)
    return bool(options) and all(
        not makers.get(each.what, _computed_by(run, each)) & ~mask for each in options
    )


def _computed_by(run: Run, value: Value) -> int:
    made = run.vm.made.get(value.what)
    return made.mask if made is not None else EVERYONE


def _is_set_elsewhere(value: Value | None) -> bool:
    """Whether it is an attribute that its class does not set: a subclass may keep it alone."""
    what = value.what if value is not None else None
    return isinstance(what, Term) and what.op == "of" and isinstance(what.args[0], Ref)


def _called_by(run: Run, value: Value) -> int | None:
    """The ranks that call what gives a value, if that is something unknown."""
    made = run.vm.made.get(value.what)
    if made is None or not isinstance(made.node, ast.Call):
        return None
    mask = made.mask
    calls = [made.node, *_call_of_function(run, made)]
    for choice, way in walk(run.root):
        if not isinstance(choice, Choice) or not isinstance(choice.node, ast.If):
            continue
        for arm in choice.arms:
            body = choice.node.body if arm.holds else choice.node.orelse
            if any(each in calls for part in body for each in ast.walk(part)):
                mask &= arm.mask & doers(way).mask
    return mask


def _call_of_function(run: Run, made: Made) -> list[ast.AST]:
    """The call of the function that makes something, if there is one alone."""
    source = run.source(made.path)
    function = source.function(made.node) if source is not None else None
    name = getattr(function, "name", None)
    calls = {
        each.node for each, _ in walk(run.root) if isinstance(each, Called) and each.name == name
    }
    return list(calls) if len(calls) == 1 else []


def _set_as(run: Run, value: Value) -> list[Value]:
    """What was put where this is held, on one way or another."""
    held = ((o, n) for o, kept in attributes(run).items() for n, v in kept.items() if v == value)
    owner, name = next(held, (None, ""))
    return [
        event.values["value"]
        for each in (*run.earlier, run)
        for event, _ in events(each.root, "set_attribute")
        if event.name == name and event.values["owner"].what == owner
    ]


def _is_lent(run: Run, event: Event, mask: int) -> bool:
    """Whether a model has other weights for a while, as those of an average, and gets its own back.

    Neither comes from a file, and nothing is trained in between.
    """
    target = event.values.get("object")
    changes = [
        each
        for each, way in events(run.root, "load_state", "backward", "step")
        if each.kind != "load_state"
        or (_is_same(each.values.get("object"), target) and doers(way).mask == mask)
    ]
    place = changes.index(event)
    beside = [*changes[max(place - 1, 0) : place], *changes[place + 1 : place + 2]]
    return _is_of_memory(run, event) and any(
        each.kind == "load_state" and each.node is not event.node and _is_of_memory(run, each)
        for each in beside
    )


def _is_same(one: Value | None, other: Value | None) -> bool:
    """Whether two are one object, or what the same unknown method gives."""
    if one is None or other is None:
        return False
    mine, theirs = one.what, other.what
    if isinstance(mine, Term) and isinstance(theirs, Term) and mine.op == theirs.op == "call":
        return mine.args[:-1] == theirs.args[:-1]
    return mine == theirs


def _is_of_memory(run: Run, event: Event) -> bool:
    """Whether nothing of a state comes from a file."""
    found = mentioned(run, event.values.get("state", NONE))
    return not any(isinstance(each, Term) and each.op == "loaded" for each in found)


def _is_used_by_others(run: Run, event: Event, way: Way, mask: int, order: dict[int, int]) -> bool:
    """Whether ranks that restore nothing train or predict afterwards, as at a job's end none do."""
    loops = {id(step.node) for step in way if isinstance(step.node, Loop)}
    return any(
        doers(at).mask & ~mask
        and (order[id(use)] > order[id(event)] or any(id(step.node) in loops for step in at))
        for use, at in events(run.root, "forward", "bare_forward", "backward", "step")
    )


def _is_of_these(run: Run, event: Event, wraps: list[Event], mask: int) -> bool:
    """Whether it is a model that no wrapper has and no other rank asks: an average, for one."""
    target = event.values.get("object")
    if target is None or not _is_a_model(run, target) or not wraps:
        return False
    for wrap in wraps:
        held = {wrap.values["wrapper"].what, *mentioned(run, wrap.values["module"])}
        numbers = {part for each in held if isinstance(each, Ref) for part in parts(run, each)}
        if target.what in held or getattr(target.what, "number", -1) in numbers:
            return False
        if any(target in run.vm.store.of(Ref(each)).values() for each in numbers):
            return False
    if isinstance(target.what, Term) and _have_others(run, target.what, mask):
        return False
    return not any(
        doers(at).mask & ~mask and (use.values.get("model") or NONE).what == target.what
        for use, at in events(run.root, "forward", "bare_forward", "method", "bare_method")
    )


def _have_others(run: Run, what: Term, mask: int) -> bool:
    """Whether ranks beside these do anything with it, or compute anything of it."""
    computed = (
        what in within(each)
        for result, made in run.vm.made.items()
        if made.mask & ~mask
        for each in (result, *(value.what for value in made.of))
    )
    given = (
        what in mentioned(run, value)
        for event, way in events(run.root)
        if doers(way).mask & ~mask
        for value in event.values.values()
    )
    return any(computed) or any(given)


def _is_a_model(run: Run, target: Value) -> bool:
    """Whether it is a module, one of several, or what a call has given that nobody knows."""
    is_given = isinstance(target.what, Term) and target.what.op in ("lib", "result")
    return is_given or all(members.is_module(run.vm, x) for x in run.vm.store.options(target))


def _is_wrapped_later(run: Run, event: Event, wraps: list[Event], order: dict[int, int]) -> bool:
    """Whether DDP, or FSDP where it is told to, shares these weights yet when it wraps them."""
    target = event.values.get("object")
    if target is None or _kind(run, target) == "optimizer":
        return False
    return any(
        order[id(wrap)] > order[id(event)] and _is_within(run, target, wrap) for wrap in wraps
    )


def _is_within(run: Run, target: Value, wrap: Event) -> bool:
    module = wrap.values.get("module")
    if module is None or module.what == target.what:
        return True
    if not isinstance(module.what, Ref) or not isinstance(target.what, Ref):
        return True
    return target.what.number in parts(run, module.what)


def _is_shared_later(run: Run, event: Event, order: dict[int, int]) -> bool:
    """Whether tensors or objects of this rank reach the others behind it, before they learn on."""
    target, until = event.values.get("object"), _learn_on(run, event, order)
    return any(
        order[id(event)] < order[id(each)] < until and _carries(run, each, target)
        for each, _ in events(run.root, "collective")
    )


def _are_objects_sent(run: Run, event: Event, order: dict[int, int]) -> bool:
    """Whether anything at all is sent behind it, before they learn on: it need not be a number."""
    until = _learn_on(run, event, order)
    return any(
        order[id(event)] < order[id(each)] < until and each.name in _OBJECTS
        for each, _ in events(run.root, "collective")
    )


def _is_restored_again(run: Run, event: Event, way: Way, order: dict[int, int]) -> bool:
    """Whether all ranks restore the same thing behind it, before they learn on."""
    target, until = event.values.get("object"), _learn_on(run, event, order)
    return any(
        order[id(each)] < until
        and _is_same(each.values.get("object"), target)
        and is_after(way, at)
        and not doers(at).some
        and all(isinstance(x.node, _NO_IF) for x in _choices(beyond(way, at)) if x in _choices(at))
        for each, at in events(run.root, "load_state")
    )


def _is_restored_by_the_others(run: Run, event: Event, order: dict[int, int]) -> bool:
    """Whether each rank restores the same thing, at one place or another: none learns between."""
    target, until, mask = event.values.get("object"), _learn_on(run, event, order), 0
    steps = [order[id(each)] for each, _ in events(run.root, "step")]
    since = max((each for each in steps if each < order[id(event)]), default=-1)
    for each, at in events(run.root, "load_state"):
        who, is_between = doers(at), since < order[id(each)] < until
        if who.some and is_between and _is_same(each.values.get("object"), target):
            mask |= who.mask
    return mask == EVERYONE


_NO_IF = (ast.Try, ast.Call)
"""What stands for several ways of which each does the same: a method of one thing or another."""


def _choices(way: Way) -> list[Choice]:
    return [step.node for step in way if isinstance(step.node, Choice)]


def _learn_on(run: Run, event: Event, order: dict[int, int]) -> int:
    """When the first step behind something is taken."""
    begun = order[id(event)]
    steps = (order[id(each)] for each, _ in events(run.root, "step"))
    return min((each for each in steps if each > begun), default=len(order))


def _carries(run: Run, collective: Event, target: Value | None) -> bool:
    """Whether what is sent is what was restored, or may be, and not a few numbers made here."""
    shared = collective.values.get("shares") or collective.values.get("arg0")
    if collective.name in _OBJECTS:
        return _is_made_use_of(run, collective)
    if shared is None:
        return collective.name == "broadcast"
    origin = [shared, *origins(run, shared)]
    sent = {of for each in origin for of in mentioned(run, each) if isinstance(of, Ref)}
    if any(_belong_together(run, each, target) for each in sent):
        return collective.name in ("broadcast", "all_reduce")
    if any(members.module_of(each.what) is not None for each in origin):
        return False  # the weights of something else
    return collective.name == "broadcast" and not _is_of_numbers(run, shared)


def _is_made_use_of(run: Run, collective: Event) -> bool:
    """Whether what came with it is handed to anything: a number of epochs is only counted to."""
    filled = collective.values.get("filled")
    if filled is None:
        return True
    return any(
        filled.what in mentioned(run, value)
        for each, _ in events(run.root)
        if each is not collective
        for value in each.values.values()
    ) or any(
        filled.what in within(value.what) for made in run.vm.made.values() for value in made.of
    )


def _is_of_numbers(run: Run, tensor: Value) -> bool:
    """Whether a few numbers were made here: as many as are given, or as a constant says."""
    made = run.vm.made.get(tensor.what)
    return made is not None and (made.by in _OF_NUMBERS or all(map(_is_constant, made.of)))


def _is_constant(value: Value) -> bool:
    if isinstance(value.what, Tuple):
        return all(map(_is_constant, value.what.items))
    return isinstance(value.what, Const)


def _belong_together(run: Run, one: Ref, other: Value | None) -> bool:
    """Whether one of two objects is the other, or a part of it."""
    if other is None or not isinstance(other.what, Ref):
        return False
    return one.number in parts(run, other.what) or other.what.number in parts(run, one)


def _kind(run: Run, target: Value) -> str:
    return "optimizer" if "optim" in run.vm.type_of(target).lower() else "module"


def _asked_by_each(run: Run) -> Iterator[Hit]:
    """Resumes that are decided by each rank's disk: of no harm where all machines share it."""
    for each in asked_by_each(run) if run.is_entry else ():
        yield Hit(
            each.look.node,
            "each rank asks its own disk what there is to resume: on a machine that does not share "
            "the folder the ranks begin anew, while the others go on",
            notes=(Related.at(each.save.place, "some ranks alone write it"),),
            help="let rank 0 look, and broadcast what it has found",
            harmless=True,
            path=each.look.path,
        )


def _fails_without_it(parting: Parting) -> bool:
    """Whether who does not find the file gives up: nothing is resumed there."""
    choice, what = parting.way[-1].node if parting.way else None, parting.condition.what
    arms = choice.arms if isinstance(choice, Choice) else ()
    ends = [each for each in arms if any(map(_gives_up, walk(each.body)))]
    is_asked_for_lack = isinstance(what, Term) and what.op == "not"
    return bool(ends) and all(each.holds is is_asked_for_lack for each in ends)


def _gives_up(found: tuple[Node, Way]) -> bool:
    return isinstance(found[0], Exit) and found[0].kind in ("end", "raise")


def _seen_by_some(run: Run, parting: Parting, look: Event, way: Way) -> Hit:
    met = parting.met[0]
    load = _loaded_behind(run, look, doers(way).mask)
    return Hit(
        load.node if load else look.node,
        "some ranks alone look at this file, and what they resume decides for all",
        notes=(how(parting, operation(met)),),
        why=parting.why,
        help="load on every rank, or broadcast what was loaded",
        path=load.path if load else look.path,
    )


def _loaded_behind(run: Run, look: Event, mask: int) -> Event | None:
    """The load that the same ranks do next."""
    passed = False
    for event, way in events(run.root, "look", "load"):
        passed = passed or event is look
        if passed and event.kind == "load" and doers(way).mask == mask:
            return event
    return None


def _decided_by_own_file(parting: Parting, look: Event, agree: Agreement) -> Hit:
    met = parting.met[0]
    return Hit(
        look.node,
        "each rank looks at a file of its own: some resume, and others do not",
        notes=(how(parting, operation(met)), "the path differs between ranks"),
        why=parting.why,
        help="let rank 0 look, and broadcast what it has found",
        confidence="certain" if agree.sure and parting.sure else "likely",
        path=look.path,
    )
