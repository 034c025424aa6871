"""Weights of a wrapped model that each rank fills with its own.

## What it does
Finds rows of a weight of a model in DDP that are set to what a rank has computed of its own batch,
or has drawn for itself, between two steps: a code of a codebook that nobody uses, a dead unit.

## Why is this bad?
DDP sends the weights round once, when it is made, and reduces gradients alone from then on. What a
rank writes into its weights by itself, the others never get: the ranks train different models to
the end, and nothing raises.

## Example
```python
codes.weight.data[unused] = encoded[pick]
```

## Use instead
```python
fresh = encoded[pick]
dist.broadcast(fresh, 0)
codes.weight.data[unused] = fresh
```

with an `unused` that all ranks have found alike.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Way, events
from ddpdoctor.lint.engine.interpreter.values import EVERYONE, Tensor, Value
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.sharding import loops
from ddpdoctor.lint.engine.queries.wrapping import mentioned, parts, weights_in, wrappers
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP310", name="different-models", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield rows of wrapped weights that are set to what is the rank's own."""
    wraps = wrappers(run)
    if not wraps or not any(True for _ in events(run.root, "backward")):
        return
    told: set[int] = set()
    shared = [event for event, _ in events(run.root, "collective") if "shares" in event.values]
    for event, way in events(run.root, "set_item"):
        weights, value = event.values["owner"], event.values["value"]
        layer = weights_in(weights)
        if layer is None or id(event.node) in told or not _is_own(value):
            continue
        wrap = next((w for m, w in wraps.items() if layer.number in parts(run, m)), None)
        if wrap is None or event.order < wrap.order or not _is_of_all(way):
            continue
        if any(layer.number in _inside(run, each.values["shares"]) for each in shared):
            continue  # they are sent round by hand
        told.add(id(event.node))
        yield Hit(
            event.node,
            "each rank puts its own into weights that DDP never sends round again: the models part",
            notes=(Related.at(wrap.place, "their gradients alone are reduced, from here on"),),
            why=value.why,
            help="send rank 0's to all, or gather them, before they are put there",
            path=event.path,
        )


def _inside(run: Run, shared: Value) -> set[int]:
    """What is in the modules whose weights are sent round."""
    return {number for each in mentioned(run, shared) for number in parts(run, each)}


def _is_of_all(way: Way) -> bool:
    """Whether all ranks come there, in the loop that they train in."""
    trains = (any(True for _ in events(each.body, "backward")) for each in loops(way))
    return doers(way).mask == EVERYONE and any(trains)


def _is_own(value: Value) -> bool:
    """Whether it is a tensor of the rank's own numbers, as far as flow shows."""
    agree = value.agree
    is_own = agree.sure and agree.cause in ("data", "shard", "chance")
    return is_own and isinstance(value.what, Tensor)
