"""Training forward past the wrapper.

## What it does
Finds `ddp_model.module(x)`, and calls of the bare model after it was wrapped, where gradients are
wanted. (`ddp_model.forward(x)` is fine, and not flagged.) And a module that an optimizer steps in
the same rounds, of which no wrapper has any part: a head, a projector, a discriminator.

## Why is this bad?
The wrapper's forward prepares the reduction of gradients. Past it, each rank trains on its own
data alone, and the models part, silently.

## Example
```python
ddp_model = DDP(net)
loss = criterion(ddp_model.module(x), y)
loss.backward()
```

## Use instead
```python
loss = criterion(ddp_model(x), y)
loss.backward()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from ddpdoctor.lint.engine.interpreter.loading import Text
from ddpdoctor.lint.engine.interpreter.objects import members
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.store import UNWRAPPED
from ddpdoctor.lint.engine.interpreter.tree import Called, Choice, Event, Loop, Node, Way, events
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    NONE,
    TRUE,
    Ref,
    Table,
    Term,
    Value,
    What,
    is_device,
    text,
    within,
)
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.holding import excludes
from ddpdoctor.lint.engine.queries.reducing import (
    reduced_by_hand,
    scaled_gradients,
    shared_in,
    stepped,
)
from ddpdoctor.lint.engine.queries.sharding import loops
from ddpdoctor.lint.engine.queries.undoing import is_undone
from ddpdoctor.lint.engine.queries.wrapping import (
    in_groups,
    made_by,
    mentioned,
    objects_in,
    origins,
    parts,
    stepped_by,
)
from ddpdoctor.lint.rule import About, Confidence, Edit, Fix, Hit, Related, characters

ABOUT = About(code="DDP303", name="bypassed-wrapper", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield training forwards that DDP does not see."""
    order = {id(event): number for number, (event, _) in enumerate(events(run.root))}
    backwards = list(events(run.root, "backward"))
    done: set[int] = set()
    wraps = [wrap for each in (*run.earlier, run) for wrap, _ in events(each.root, "wrap")]
    for wrap in wraps:  # the object whose methods are run alone was made before
        wrapper, module = wrap.values["wrapper"].what, wrap.values["module"].what
        assert isinstance(wrapper, Ref)
        inside = {-wrapper.number, *parts(run, module)}
        by_hand = reduced_by_hand(run, {wrapper, module})
        # Of one module there is one wrapper, of whichever kind of trainer.
        kinds = {
            _number(x.values["wrapper"].what) for x in wraps if x.values["module"].what == module
        }
        for event, way in backwards:
            loss, of = event.values["loss"], made_by(event.values["loss"])
            if kinds & of:
                continue
            if any(id(each) in by_hand for each in loops(way)):
                continue
            if is_undone(run, event, way, {wrapper, module}):
                continue
            is_sure = bool(of & inside) or module in mentioned(run, loss)
            if not is_sure and not _is_computed_by(run, loss, wrapper, module):
                continue
            prepare = [x for x in _forwards(run, "") if _prepares(*x, kinds, way)]
            learn = [(x, at) for x, at in backwards if kinds & made_by(x.values["loss"])]
            if any(not _is_used_up(order, x, event, way, learn) for x, _ in prepare):
                continue
            following = _what_follows(run, order, event, {wrapper, module})
            if following == "zero_grad" or (prepare and following != "step"):
                continue
            past = [
                (each, there)
                for each, there in _forwards(run, "bare_")
                if each.values["model"].what is module
                and order.get(id(wrap), -1) < order[id(each)] < order[id(event)]
            ]
            for before in _last_on_each_way(past):
                found = _outermost(before)
                if _is_frozen(run, order, {wrapper, module}, found) or id(found.node) in done:
                    continue
                done.add(id(found.node))
                is_run = any(each.kind == "bare_forward" for each, _ in before)
                is_seen = is_run or not isinstance(module, Term)
                certain = is_sure and is_seen and not prepare
                way_to = next(there for each, there in before if each is found)
                yield _hit(run, found, way_to, wrap, ABOUT.confidence if certain else "likely")
    yield from _left_out(run)


def _is_frozen(run: Run, order: dict[int, int], models: set[What], forward: Event) -> bool:
    """Whether a model's weights were said to need no gradient, last before this: it gets none."""
    said = [
        event.values.get("on", TRUE)
        for event, _ in events(run.root, "unfreeze")
        if order[id(event)] < order[id(forward)]
        and not models.isdisjoint(mentioned(run, event.values.get("object", NONE)))
    ]
    return bool(said) and said[-1].is_const(False)


def _is_computed_by(run: Run, loss: Value, wrapper: Ref, module: What) -> bool:
    """Whether a loss goes back to what a module has given whose class nobody sees.

    Such a module's methods may run it, as far as one knows: that is likely, never certain.
    """
    behind = list(_all_behind(run, loss))
    if any(wrapper.number in made_by(each) for each in behind):
        return False
    return isinstance(module, Term) and any(module in mentioned(run, each) for each in behind)


def _all_behind(run: Run, loss: Value) -> Iterator[Value]:
    """What a loss was computed from, on each way where it is taken of one of several results."""
    seen: set[What] = set()
    stack = [loss]
    while stack:
        for each in origins(run, stack.pop()):
            yield each
            several = {part for part in within(each.what) if part in run.vm.store.joins} - seen
            seen |= several
            stack += (one for part in several for one in run.vm.store.joins[part])


def _left_out(run: Run) -> Iterator[Hit]:
    """A module that is trained beside a wrapped one, and that no wrapper has."""
    wraps = {_number(event.values["wrapper"].what): event for event, _ in events(run.root, "wrap")}
    wrapped = [objects_in(run, event.values["module"]) for event in wraps.values()]
    if not all(wrapped):
        return  # who knows what else is
    had = wraps.keys() | {part for each in wrapped for ref in each for part in parts(run, ref)}
    losses = [(made_by(each.values["loss"]), way) for each, way in events(run.root, "backward")]
    for optimizer, _ in events(run.root, "new"):
        for module in stepped_by(run, optimizer):
            own = parts(run, module)
            if own & had or not members.is_module(run.vm, Value(module)) or _is_a_shard(run, own):
                continue
            taught = [loops(way) for of, way in losses if own & of]
            rounds = {id(each[-1]) for each in taught if each and _is_stepped(run, optimizer, each)}
            beside = [
                wraps[number]
                for of, way in losses
                if any(id(each) in rounds for each in loops(way)) and doers(way).mask == EVERYONE
                for number in sorted(of & wraps.keys())
            ]
            runs = [e for e, _ in _forwards(run, "bare_") if _number(e.values["model"].what) in own]
            if not beside or not runs or _is_scaled_by_hand(run, module):
                continue
            if rounds.isdisjoint(shared_in(run, {module, optimizer.values["object"].what})):
                yield _left_out_by(beside[-1], runs[0], optimizer)
                return


def _is_stepped(run: Run, optimizer: Event, around: list[Loop]) -> bool:
    """Whether an optimizer steps in the rounds of a backward, as far as it is seen to step."""
    made = optimizer.values["object"].what
    steps = [loops(way) for event, way in events(run.root, "step") if stepped(event).what is made]
    inner = around[-1]
    return not steps or any(at and (at[-1] in around or inner in at) for at in steps)


def _is_scaled_by_hand(run: Run, module: Ref) -> bool:
    """Whether a module has its gradients changed on their own, as an expert without a twin has."""
    changed = [each for _, _, each, _ in scaled_gradients(run)]
    changed += [
        event.values["owner"].what
        for event, _ in events(run.root, "set_attribute")
        if event.name == "grad" and not event.values["value"].is_const(None)
    ]
    return any(module in mentioned(run, Value(each)) for each in changed)


def _is_a_shard(run: Run, modules: set[int]) -> bool:
    """Whether a module is told its rank: it may hold a part of a model that no rank has whole."""
    held = (pair for each in modules for pair in run.vm.store.of(Ref(each)).items())
    return any(
        value.agree.kind == "rank" and name != "#device" and not _is_a_device(value)
        for name, value in held
    )


def _is_a_device(value: Value) -> bool:
    """Whether it says where a module is, which is another place on each rank."""
    what = value.what
    named = isinstance(what, Table) and all(isinstance(each, str) for each in what.entries)
    return named or is_device(what)


def _left_out_by(wrap: Event, forward: Event, optimizer: Event) -> Hit:
    node = forward.node
    said = text(node.func) if isinstance(node, ast.Call) else forward.name
    return Hit(
        wrap.node,
        f"`{said}` is trained beside the wrapped module: its gradients are never reduced",
        notes=(
            Related.at(forward.place, "it runs"),
            Related.at(optimizer.place, "an optimizer steps it"),
        ),
        help="wrap it too, or make it a part of the wrapped module and run it in forward()",
        confidence="likely",
        path=wrap.path,
    )


def _number(what: What) -> int:
    return what.number if isinstance(what, Ref) else -1


def _forwards(run: Run, prefix: str) -> Iterator[tuple[Event, Way]]:
    """The forwards of wrappers, or those past them, of which gradients are kept."""
    for event, way in events(run.root, f"{prefix}forward", f"{prefix}method"):
        if "no_grad" not in event.scopes:
            yield event, way


def _last_on_each_way(past: list[tuple[Event, Way]]) -> Iterator[list[tuple[Event, Way]]]:
    """The last of them and what was before it, and so of each other way that does not meet it."""
    last: list[Way] = []
    for number, (_, way) in reversed(list(enumerate(past, 1))):
        if all(excludes(way, each) for each in last):
            last.append(way)
            yield past[:number]


def _outermost(past: list[tuple[Event, Way]]) -> Event:
    """The last of them, or the call of the module that has led to it."""
    calls = {id(event.node): event for event, _ in past}
    last, way = past[-1]
    led = [calls[id(step.node.node)] for step in way[:-1] if _is_one_of(step.node, calls)]
    return led[0] if led else last


def _is_one_of(node: Node, calls: dict[int, Event]) -> TypeGuard[Called]:
    return isinstance(node, Called) and id(node.node) in calls


def _prepares(forward: Event, there: Way, wrappers: set[int], backward: Way) -> bool:
    """Whether a wrapper's forward is run in the round of a backward: then all is reduced."""
    loop = next((step.node for step in reversed(backward) if isinstance(step.node, Loop)), None)
    same = loop is None or any(step.node is loop for step in there)
    return same and _number(forward.values["model"].what) in wrappers


def _is_used_up(
    order: dict[int, int], forward: Event, backward: Event, way: Way, learn: list[tuple[Event, Way]]
) -> bool:
    """Whether another backward comes in between: one alone is reduced for each forward.

    Where the forward comes after the backward, it is that of the round before.
    """
    around = {id(step.node) for step in way}
    start, end = order[id(forward)], order[id(backward)]
    for each, there in learn:
        number = order[id(each)]
        between = start < number < end if start < end else number > start or number < end
        is_sure = all(not isinstance(x.node, Choice) or id(x.node) in around for x in there)
        if between and is_sure and "no_sync" not in each.scopes:
            return True
    return False


def _what_follows(run: Run, order: dict[int, int], backward: Event, weights: set[What]) -> str:
    """Whether an optimizer of these weights steps by what a backward has left, or it is forgotten.

    That is what comes next, in this round or the one after: step, zero_grad, or "" for neither.
    """
    own = [
        (order[id(each)] < order[id(backward)], order[id(each)], each.kind)
        for each, _ in events(run.root, "zero_grad", "step")
        if stepped(each).what in weights or weights & _held(run, stepped(each))
    ]
    return min(own)[2] if own else ""


def _held(run: Run, optimizer: Value) -> set[What]:
    given = run.vm.store.get((optimizer.what, "parameters"))
    return in_groups(run, given) if given is not None else set()


def _hit(run: Run, event: Event, way: Way, wrap: Event, confidence: Confidence) -> Hit:
    node = event.node
    said = text(node.func) if isinstance(node, ast.Call) else event.name
    return Hit(
        node,
        f"`{said}(...)` bypasses DDP: its gradients are never reduced",
        notes=(
            Related.at(wrap.place, "DDP wraps the model"),
            *_taken_off(event),
            *_handed_in(run, event, way),
            *_handed_over(run, event),
        ),
        help="call the wrapper; what else needs gradients belongs into forward()",
        fix=_fix(run, event, wrap),
        confidence=confidence,
        path=event.path,
    )


def _taken_off(event: Event) -> Iterator[Related]:
    """Where a module that is called elsewhere is taken out of its wrapper."""
    chain = why.chain() if (why := event.values["model"].why) is not None else ()
    for each in chain:
        if each.text == UNWRAPPED and each.place != event.place:
            yield Related.at(each.place, UNWRAPPED)


def _handed_in(run: Run, event: Event, way: Way) -> Iterator[Related]:
    """The call by which a function is handed the bare module."""
    source, node = run.source(event.path), event.node
    function = source.function(node) if source is not None else None
    if not isinstance(function, ast.FunctionDef) or not isinstance(node, ast.Call):
        return
    names = [each.arg for each in (*function.args.args, *function.args.kwonlyargs)]
    calls = [step.node for step in way[:-1] if isinstance(step.node, Called)]
    if calls and isinstance(node.func, ast.Name) and node.func.id in names:
        yield Related.at(calls[-1].place, f"{calls[-1].name}() is handed the bare module")


def _handed_over(run: Run, event: Event) -> Iterator[Related]:
    """Where an object is made that keeps the bare module, and calls it as its own."""
    function = event.node.func if isinstance(event.node, ast.Call) else None
    if not isinstance(function, ast.Attribute):
        return
    for kept, way in events(run.root, "set_attribute"):
        calls = [step.node for step in way if isinstance(step.node, Called)]
        same = (
            kept.name == function.attr and kept.values["value"].what is event.values["model"].what
        )
        if same and kept.path == event.path and calls and calls[-1].place != event.place:
            yield Related.at(calls[-1].place, f"{calls[-1].name}() keeps the bare module")
            return


def _fix(run: Run, event: Event, wrap: Event) -> Fix | None:
    """`wrapper(x)`, where the wrapper has a name there."""
    source, node = run.source(event.path), event.node
    if source is None or not isinstance(node, ast.Call) or event.kind == "bare_method":
        return None
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr == "module":
        name = ast.unparse(func.value)
    elif isinstance(func, ast.Name):
        name = _name_of(source, event, wrap)
    else:
        return None
    if not name or func.lineno != func.end_lineno:
        return None
    line = source.lines[func.lineno - 1]
    start, end = characters(line, func.col_offset), characters(line, func.end_col_offset or 0)
    return Fix((Edit((func.lineno, start), (func.lineno, end), name),))


def _name_of(source: Text, event: Event, wrap: Event) -> str:
    """What the wrapper is called in the function of an event, "" where it has no name there."""
    lines = [each.place.line for each in (event, wrap)]
    if wrap.path != event.path or len({source.statement(line)[2] for line in lines}) > 1:
        return ""
    for each in source.nodes:
        if isinstance(each, ast.Assign) and each.value is wrap.node and len(each.targets) == 1:
            return ast.unparse(each.targets[0])
    return ""
