"""Two backward passes after one forward of a wrapper.

## What it does
Finds `a.backward(retain_graph=True)` and then `b.backward()`, where both losses come of one call
of the wrapped model, and no other call of it stands between.

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
from ddpdoctor.lint.engine.interpreter.values import Ref
from ddpdoctor.lint.engine.queries.holding import excludes
from ddpdoctor.lint.engine.queries.reducing import reduced_by_hand
from ddpdoctor.lint.engine.queries.sharding import loops, numbers
from ddpdoctor.lint.engine.queries.wrapping import has_graph, made_by
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP311", name="marked-ready-twice", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield the second backward of one forward."""
    done = list(events(run.root, "forward", "backward"))
    wraps = [event for event, _ in events(run.root, "wrap")]
    wrappers = {number for event in wraps for number in numbers(event.values["wrapper"])}
    told: set[int] = set()
    for wrap in wraps:
        wrapper, module = wrap.values["wrapper"], wrap.values["module"]
        if run.vm.type_of(wrapper) != members.DDP or not isinstance(wrapper.what, Ref):
            continue
        by_hand = reduced_by_hand(run, {wrapper.what, module.what})
        last: list[tuple[Event, Way]] = []
        for event, way in done:
            if event.kind == "forward":
                last = [] if event.values["model"].what == wrapper.what else last
                continue
            # What another wrapper was given may have been cut off from this one.
            of = made_by(event.values["loss"]) & wrappers
            if of != {wrapper.what.number} or not has_graph(run, event.values["loss"], of):
                continue
            first = next((each for each, there in last if _comes_after(there, way)), None)
            last.append((event, way))
            if first is None or id(event.node) in told or "no_sync" in event.scopes:
                continue
            if "no_sync" in first.scopes or by_hand & {id(each) for each in loops(way)}:
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
