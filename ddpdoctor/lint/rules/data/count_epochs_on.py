"""Epochs that repeat: the sampler is told a number that it was told before.

## What it does
Finds a `set_epoch` in the loop over epochs whose number is the same in every round, or that counts
from 0 the epochs that are left after a resume.

## Why is this bad?
The sampler shuffles with `seed + epoch`: epochs of one number have the same order, and each rank
reads the same part in them. A run that was interrupted begins again with the orders of its first.

## Example
```python
for epoch in range(epochs - done):
    sampler.set_epoch(epoch)
```

## Use instead
```python
for epoch in range(done, epochs):
    sampler.set_epoch(epoch)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Loop, Step, events
from ddpdoctor.lint.engine.interpreter.values import Term, Value, What, within
from ddpdoctor.lint.engine.queries.sharding import (
    SAMPLER,
    loops,
    made,
    numbers,
    passes,
    shards,
    shuffles,
)
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP203", name="missing-set-epoch", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield where samplers are told an epoch that they were told before."""
    told: set[int] = set()
    for event, way in events(run.root, "set_epoch"):
        epoch, around = event.values.get("epoch"), [x for x in way if isinstance(x.node, Loop)]
        if epoch is None or len(around) != 1 or id(event.node) in told:
            continue
        (step,) = around
        assert isinstance(step.node, Loop)
        samplers = _trained_in(run, step.node) & numbers(event.values.get("object"))
        if not samplers or len(_calls(step.node, samplers)) > 1:
            continue
        if _is_of_what_is_left(run, step, epoch):
            told.add(id(event.node))
            yield Hit(
                step.node.node,
                "after a resume the epochs are counted from 0 again, and the sampler repeats their "
                "orders",
                notes=(Related.at(event.place, "it is told their number"),),
                help="count on from the epochs that are done",
                path=step.node.path,
            )
        elif _is_fixed(step.node, epoch.what):
            told.add(id(event.node))
            yield Hit(
                event.node,
                "the sampler is told the same epoch in every round: all have the same order",
                notes=(Related.at(step.node.place, "the loop over the epochs"),),
                help="tell it the number of the round",
                path=event.path,
            )


def _trained_in(run: Run, epochs: Loop) -> set[int]:
    """The samplers that shuffle what is trained on in each round of a loop."""
    if epochs.rounds == 1:
        return set()
    samplers, sharded = made(run, SAMPLER), shards(run)
    found = {
        sharded[loader]
        for each in passes(run)
        if each.trains and epochs in loops(each.way)
        for loader in each.loaders & sharded.keys()
    }
    return {each for each in found if shuffles(samplers, each)}


def _calls(epochs: Loop, samplers: set[int]) -> list[Event]:
    """All that may tell one of these samplers an epoch in a loop."""
    return [
        event
        for event, _ in events(epochs.body, "set_epoch")
        if not (known := numbers(event.values.get("object"))) or known & samplers
    ]


def _is_of_what_is_left(run: Run, step: Step, epoch: Value) -> bool:
    """Whether it is the counter of a loop over what was not done when a file was saved."""
    loop, begun = step.node, step.begun
    if begun is None or epoch.what != begun.values["element"].what or not isinstance(loop, Loop):
        return False
    count = loop.count.what
    if not isinstance(count, Term) or count.op != "range" or len(count.args) != 1:
        return False
    (left,) = count.args
    return (
        isinstance(left, Term)
        and left.op == "Sub"
        and any(
            isinstance(part, Term) and part.op == "loaded"
            for each in run.vm.store.options(Value(left.args[1]))
            for part in within(each.what)
        )
    )


def _is_fixed(epochs: Loop, told: What) -> bool:
    """Whether each round tells where the loop begins or ends, which is known before it."""
    return (
        isinstance(told, Term)
        and told.op not in ("counter", "element")
        and told not in epochs.counted
        and told in within(epochs.count.what)
    )
