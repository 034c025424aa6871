"""Two backward passes after one forward of a wrapper.

## What it does
Finds `a.backward(retain_graph=True)` and then `b.backward()`, where both losses come of one call
of the wrapped model, and no other call of it stands between; and a loop over such losses. Not where
the backward of another call comes before the step: that takes the mean of all that has gathered.

## Why is this bad?
A forward of the wrapper prepares one reduction. The second backward adds gradients to parameters
that have been reduced already: they stay this rank's own, and the models part, silently. Where the
first has not reached all parameters, one that both reach is "marked as ready twice", and it raises.

## Example
```python
out, commitment = ddp_model(x)
criterion(out, y).backward(retain_graph=True)
commitment.backward()
```

## Use instead
```python
out, commitment = ddp_model(x)
(criterion(out, y) + commitment).backward()
```
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ddpdoctor.lint.engine.interpreter.objects import members
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Exit, Way, events
from ddpdoctor.lint.engine.interpreter.values import NONE, Ref, Tensor, Value
from ddpdoctor.lint.engine.queries.forwards import has_parameters
from ddpdoctor.lint.engine.queries.holding import excludes
from ddpdoctor.lint.engine.queries.order import is_after
from ddpdoctor.lint.engine.queries.reducing import reduced_by_hand
from ddpdoctor.lint.engine.queries.sharding import loops, numbers
from ddpdoctor.lint.engine.queries.wrapping import computed_from, has_graph, made_by
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP311", name="marked-ready-twice", confidence="likely")

_Done = tuple[Event, Way]


def check(run: Run) -> Iterator[Hit]:
    """Yield the second backward of one forward."""
    done = list(events(run.root, "forward", "backward", "step"))
    wraps = [event for event, _ in events(run.root, "wrap")]
    wrappers = {number for event in wraps for number in numbers(event.values["wrapper"])}
    told: set[int] = set()
    for wrap in wraps:
        wrapper, module = wrap.values["wrapper"], wrap.values["module"]
        if run.vm.type_of(wrapper) != members.DDP or not isinstance(wrapper.what, Ref):
            continue
        by_hand = reduced_by_hand(run, {wrapper.what, module.what})
        last: list[_Done] = []
        for number, (event, way) in enumerate(done):
            if event.kind != "backward":
                last = [] if _is_forward(event, wrapper) else last
                continue
            # What another wrapper was given may have been cut off from this one.
            of = made_by(event.values["loss"]) & wrappers
            if of != {wrapper.what.number} or not has_graph(run, event.values["loss"], of):
                continue
            first = next((each for each, there in last if _comes_after(there, way)), None)
            first = event if first is None and _goes_again(event, way, done, wrapper) else first
            last.append((event, way))
            if first is None or id(event.node) in told or "no_sync" in event.scopes:
                continue
            if "no_sync" in first.scopes or by_hand & {id(each) for each in loops(way)}:
                continue
            if _is_reduced_later(done[number + 1 :], wrapper, wrappers):
                continue
            if first is not event and _are_apart(run, first.values["loss"], event.values["loss"]):
                continue
            told.add(id(event.node))
            yield Hit(
                event.node,
                "another backward of one forward: DDP reduces the gradients of the first alone",
                notes=(
                    Related.at(first.place, "this one is reduced"),
                    Related.at(wrap.place, "DDP wraps the model"),
                ),
                help="add the losses up, and call backward() once",
                path=event.path,
            )


def _is_forward(event: Event, wrapper: Value) -> bool:
    return event.kind == "forward" and event.values["model"].what == wrapper.what


def _is_reduced_later(then: list[_Done], wrapper: Value, wrappers: set[int]) -> bool:
    """Whether another forward's backward comes before the step: all that has gathered is averaged.

    DDP takes the mean of what is in `grad`, and the mean of what is alike already changes nothing.
    """
    is_prepared = False
    for event, _ in then:
        if event.kind == "step":
            return False
        if "no_sync" in event.scopes:
            continue
        is_prepared = is_prepared or _is_forward(event, wrapper)
        if event.kind == "backward" and is_prepared:
            of = made_by(event.values["loss"]) & wrappers
            if isinstance(wrapper.what, Ref) and wrapper.what.number in of:
                return True
    return False


def _goes_again(event: Event, way: Way, done: list[_Done], wrapper: Value) -> bool:
    """Whether it keeps the graph of a forward before its loop, and does so in each round."""
    around = [at for each, at in done if _is_forward(each, wrapper)]
    forward = next((at for at in reversed(around) if is_after(at, way)), None)
    if forward is None or not event.values.get("keeps", NONE).is_const(True):
        return False
    inner = [loop for loop in loops(way) if loop not in loops(forward) and loop.rounds != 1]
    return bool(inner) and not any(loop in loops(at) for at in around for loop in inner)


def _are_apart(run: Run, one: Value, other: Value) -> bool:
    """Whether two losses are known to come of parts of the model that share no weights."""
    mine, its = _parts_of(run, one), _parts_of(run, other)
    return bool(mine) and bool(its) and not mine & its


def _parts_of(run: Run, loss: Value) -> set[int]:
    """The layers with weights that a loss is computed by."""
    sites = {
        each.what.site for each, _ in computed_from(run, loss) if isinstance(each.what, Tensor)
    }
    inner = (each.of for each in run.vm.made if isinstance(each, Tensor) and each.site in sites)
    return {number for of in inner for number in of if has_parameters(run, number)}


def _comes_after(first: Way, second: Way) -> bool:
    """Whether a process may come to the second in the round in which it did the first."""
    if [id(each) for each in loops(first)] != [id(each) for each in loops(second)]:
        return False
    met = {id(step.seq): step.index for step in second}
    is_apart = any(
        isinstance(step.node, Choice) and step.index == met.get(id(step.seq))
        for step, inside in pairwise(first)
        if id(inside.seq) not in met
    )
    between = (
        node for step in first for node in step.seq.items[step.index + 1 : met.get(id(step.seq))]
    )
    is_left = any(isinstance(node, Exit) for node in between)
    return not (is_apart or is_left or excludes(first, second))
