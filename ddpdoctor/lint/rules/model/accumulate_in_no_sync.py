"""Gradient accumulation without no_sync.

## What it does
Finds a DDP training loop that steps the optimizer every k-th batch and never uses `no_sync`; and
accelerate's `accumulate` of a part of the model that was prepared, which has no `no_sync`.

## Why is this bad?
Every backward reduces all gradients, although only the last one of k needs to: k times the
traffic.

## Example
```python
for i, batch in enumerate(loader):
    ddp_model(batch).backward()
    if (i + 1) % k == 0:
        optimizer.step()
```

## Use instead
```python
for i, batch in enumerate(loader):
    last = (i + 1) % k == 0
    with nullcontext() if last else ddp_model.no_sync():
        ddp_model(batch).backward()
    if last:
        optimizer.step()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from itertools import pairwise

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Loop, Seq, Way, events
from ddpdoctor.lint.engine.interpreter.values import Const, Ref, Term, Value, What, text, within
from ddpdoctor.lint.engine.queries.partings import leaves
from ddpdoctor.lint.engine.queries.reducing import stepped
from ddpdoctor.lint.engine.queries.wrapping import in_groups, made_by, mentioned, parts, wrappers
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP304", name="accumulation-syncs-every-step", confidence="likely")

_CURE = "run all but the last micro-batch inside `with model.no_sync():`"
_SCOPES = ("no_sync", "accumulate")
_SIZES = ("Lt", "LtE", "Gt", "GtE")
_ONCE = Term("range", (Const(1),))


def check(run: Run) -> Iterator[Hit]:
    """Yield the backwards of accumulating loops that reduce every time."""
    runs = (*run.earlier, run)  # the object whose methods are run alone was made before
    wrapped = {
        each.values["wrapper"].what
        for before in runs
        for each in wrappers(before).values()
        if "kw_learns_what_is_used" not in each.values  # apex's, which has no such context
    }
    numbers = {each.number for each in wrapped if hasattr(each, "number")}
    yield from _of_a_part(run, numbers)
    if not numbers or any(map(_is_controlled, runs)):
        return
    steps = list(events(run.root, "step"))
    emptied = list(events(run.root, "zero_grad"))
    for event, way in events(run.root, "backward"):
        loop = _loop(way)
        models = made_by(event.values.get("loss")) & numbers
        if loop is None or not models or "join" in event.scopes:
            continue
        if _is_window(loop, way, [at for _, at in steps]) and not models & _taken_in_turn(
            run, loop, way
        ):
            yield _hit(event, Related.at(loop.place, "the optimizer steps after this loop"))
            continue
        inside = [
            (step, at)
            for step, at in steps
            if _loop(at) is loop
            and not _parted(way, at, loop)
            and not any(
                stepped(each).what == stepped(step).what and _is_in_every(to, way, loop)
                for each, to in emptied
            )
        ]
        for model in sorted(models):
            mine = [at for step, at in inside if _may_step(run, step, model)]
            every = [choice for at in mine if (choice := _every_so_often(run, at, loop, way))]
            if mine and len(every) == len(mine):
                steps_if = f"the optimizer steps only `if {text(every[0].test)}`"
                yield _hit(event, Related.at(every[0].place, steps_if))
                break


def _may_step(run: Run, step: Event, wrapper: int) -> bool:
    """Whether it is an optimizer of a wrapper's weights, or of nobody knows which."""
    optimizer = stepped(step).what
    given = run.vm.store.get((optimizer, "parameters")) if isinstance(optimizer, Ref) else None
    found = in_groups(run, given) if given is not None else ()
    known = [each for each in found if isinstance(each, Ref)]
    own = parts(run, Ref(wrapper))
    return not known or any(own & parts(run, each) for each in known)


def _is_in_every(emptying: Way, backward: Way, loop: Loop) -> bool:
    """Whether gradients are emptied in every round that has a backward: nothing is accumulated."""
    if _loop(emptying) is not loop or _fork(backward, emptying) is not None:
        return False
    around = {id(each) for each in _asked(backward, loop)}
    return all(id(each) in around for each in _asked(emptying, loop))


def _hit(backward: Event, why: Related, cure: str = _CURE) -> Hit:
    return Hit(
        backward.node,
        "every micro-batch reduces all gradients: accumulation without no_sync",
        notes=(why,),
        help=cure,
        path=backward.path,
    )


def _of_a_part(run: Run, numbers: Set[object]) -> Iterator[Hit]:
    """What is accumulated by a part of the model: the wrapper around it is told nothing."""
    entered = [each for each, _ in events(run.root, "enter") if each.name == "accumulate"]
    given = {each.values["of"].what for each in entered if "of" in each.values}
    modules = {event.values["module"].what for event, _ in events(run.root, "wrap")}
    kept = (event.values for event, _ in events(run.root, "set_attribute"))
    if not given or not given <= {x["value"].what for x in kept if x["owner"].what in modules}:
        return
    for event, _ in events(run.root, "backward"):
        if "accumulate" in event.scopes and made_by(event.values.get("loss")) & numbers:
            why = Related.at(entered[0].place, "`accumulate` is given a part of it alone")
            yield _hit(event, why, "give `accumulate` what `prepare` has returned")


def _is_window(loop: Loop, way: Way, steps: list[Way]) -> bool:
    """Whether a loop of forwards and backwards stands before a step that another loop repeats."""
    if loop.count.what == _ONCE or any(True for _ in events(loop.body, "step", "zero_grad")):
        return False
    if not any(True for _ in events(loop.body, "forward")):
        return False  # the losses of one forward
    depth = _depth(loop, way)
    body = way[depth].seq
    is_repeated = any(isinstance(each.node, Loop) for each in way[:depth])
    return is_repeated and any(
        each.seq is body and each.index > way[depth].index for step in steps for each in step
    )


def _taken_in_turn(run: Run, loop: Loop, way: Way) -> set[int]:
    """The models of which each round of a loop has another, and all that they hold."""
    begun = way[_depth(loop, way)].begun
    if begun is None:
        return set()
    element = begun.values["element"]
    picked = {
        event.values["model"].what
        for event, _ in events(loop.body, "forward")
        if isinstance(event.node, ast.Call) and _is_picked(event.node.func)
    }
    turns = [event.values for event, _ in events(loop.body, "turn")]
    taken = [element, *(each["element"] for each in turns if each["index"].what == element.what)]
    numbers = {each.number for each in picked if isinstance(each, Ref)}
    return numbers | {
        part for value in taken for each in mentioned(run, value) for part in parts(run, each)
    }


def _is_picked(function: ast.expr) -> bool:
    """Whether a model is one of several, by a key of the round."""
    return isinstance(function, ast.Subscript) and not isinstance(function.slice, ast.Constant)


def _depth(loop: Loop, way: Way) -> int:
    return next(number for number, each in enumerate(way) if each.node is loop)


def _is_controlled(run: Run) -> bool:
    """Whether the program says itself when to reduce."""
    return any(event.name in _SCOPES for event, _ in events(run.root, "enter", "scope")) or any(
        event.name == "require_backward_grad_sync" for event, _ in events(run.root, "set_attribute")
    )


def _parted(one: Way, other: Way, loop: Loop) -> bool:
    """Whether two things are done on two ways of which a loop goes one, the same in each round."""
    depth = _fork(one, other)
    if depth is None:
        return False
    choice = one[depth].node
    assert isinstance(choice, Choice)
    asked = {each.op for each in within(choice.condition.what) if isinstance(each, Term)}
    return depth > _depth(loop, one) and not asked & {"counter", "joined"}


def _fork(one: Way, other: Way) -> int | None:
    """How deep the choice lies of which two things are done on two arms."""
    pairs = zip(pairwise(one), pairwise(other), strict=False)
    for depth, ((at, mine), (to, theirs)) in enumerate(pairs):
        if at.node is not to.node:
            break
        if isinstance(at.node, Choice) and mine.seq is not theirs.seq:
            return depth
    return None


def _loop(way: Way) -> Loop | None:
    return next((step.node for step in reversed(way) if isinstance(step.node, Loop)), None)


def _every_so_often(run: Run, step: Way, loop: Loop, backward: Way) -> Choice | None:
    """The condition on every k-th round before a step, which the backward does not stand under."""
    around = {id(each) for each in _asked(backward, loop)}
    counted = _counted(loop)
    for node in _asked(step, loop):
        if id(node) in around:
            continue
        found = [one for one in mentioned(run, node.condition) if isinstance(one, Term)]
        counters = counted & {*found}
        if any(one.op == "Mod" or (one.op == "Eq" and counters) for one in found):
            return node
        if counters & loop.anew and any(one.op in _SIZES for one in found):
            return node
        if node.condition.agree.cause != "data" and any(_is_distance(run, x) for x in found):
            return node
    return None


def _asked(way: Way, loop: Loop) -> Iterator[Choice]:
    """What is asked in a round on the way to something, the last first: also who goes on early."""
    for each in reversed(way):
        if isinstance(each.node, Choice):
            yield each.node
        if each.node is loop:
            return
        for before in reversed(each.seq.items[: each.index]):
            if isinstance(before, Choice) and any(_goes_on(arm.body) for arm in before.arms):
                yield before


def _goes_on(body: Seq) -> bool:
    """Whether a way goes on to the next round."""
    left = leaves(body)
    return left is not None and left.kind == "continue"


def _is_distance(run: Run, what: Term) -> bool:
    """Whether it is how far something is from what it was in a round before, or from the next."""
    if what.op != "Sub" or not isinstance(what.args[1], Term):
        return False
    now, *_ = what.args
    before = [each.what for each in run.vm.store.options(Value(what.args[1]))]
    return any(each in (now, Term("Add", (now, Const(1)))) for each in before)


def _counted(loop: Loop) -> set[What]:
    """What each round of a loop adds a number to."""
    sums = (event.values for event, _ in events(loop.body, "add_up"))
    return {each["old"].what for each in sums if isinstance(each["value"].constant, int)}
