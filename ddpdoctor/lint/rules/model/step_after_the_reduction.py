"""Hooks that a weight's own gradient sets off, before it is that of all ranks.

## What it does
Finds functions given to `register_post_accumulate_grad_hook` of a wrapped model's weights that step
an optimizer. And those that sum what they are given over the ranks, where nobody reduces gradients.

## Why is this bad?
Such a hook runs as soon as this rank's gradient is there, before DDP takes the mean of all: each
rank steps with its own, and the models part, silently. And it is given the weight: who sums that
leaves the gradient as it is, which is to be found in its `grad`.

## Example
```python
def update(weight):
    optimizers[weight].step()
```

## Use instead
```python
def update(weight):
    dist.all_reduce(weight.grad, op=dist.ReduceOp.AVG)
    optimizers[weight].step()
```

of the bare model's weights, without a wrapper.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run, run_apart
from ddpdoctor.lint.engine.interpreter.tree import Event, Seq, events
from ddpdoctor.lint.engine.interpreter.values import EVERYONE, NOTHING, Value
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.reducing import sums
from ddpdoctor.lint.engine.queries.wrapping import mentioned, parts, wrappers
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP303", name="bypassed-wrapper", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield what hooks do with gradients of the rank's own, or do not do with them."""
    told: set[int] = set()
    for event, way in events(run.root, "gradient_hook"):
        done = run_apart(run, event.values["hook"], [event.values["weight"]], event.node)
        if done is None or id(event.node) in told or doers(way).mask != EVERYONE:
            continue
        met = [each for each, _ in events(done, "collective")]
        if _is_of_a_wrapper(run, event) and not met:
            found = _stepped(done, event)
        else:
            found = _summed(run, event, met)
        for hit in found:
            told.add(id(event.node))
            yield hit


def _stepped(done: Seq, hook: Event) -> Iterator[Hit]:
    step = next((each for each, _ in events(done, "step")), None)
    if step is not None:
        yield Hit(
            hook.node,
            "this steps with the rank's own gradient: DDP reduces it after this hook",
            notes=(Related.at(step.place, "the optimizer steps here"),),
            help="step after backward(); or all_reduce the gradient in the hook, without DDP",
            path=hook.path,
        )


def _summed(run: Run, hook: Event, met: list[Event]) -> Iterator[Hit]:
    weight = hook.values["weight"].what
    given = [each.values["shares"].what for each in met if "shares" in each.values]
    if weight == NOTHING or not given or any(each != weight for each in given):
        return
    steps = any(True for _ in events(run.root, "step"))
    if steps and sums(met[0]) and not _are_reduced(run):
        yield Hit(
            met[0].node,
            "the weight is summed over the ranks, and its gradient stays the rank's own",
            notes=(Related.at(hook.place, "this hook is given the weight itself"),),
            help="reduce `.grad` of what the hook is given",
            path=met[0].path,
        )


def _are_reduced(run: Run) -> bool:
    """Whether anything is reduced outside of hooks, or by a wrapper: it may be the gradients."""
    return any(True for _ in events(run.root, "wrap", "shard")) or any(
        event.name.startswith(("all_reduce", "reduce"))
        for event, _ in events(run.root, "collective")
    )


def _is_of_a_wrapper(run: Run, hook: Event) -> bool:
    """Whether the weight is one that a wrapper reduces."""
    of = mentioned(run, Value(hook.values["weight"].what))
    return any(
        not of.isdisjoint(mentioned(run, Value(each)))
        or any(getattr(one, "number", None) in parts(run, each) for one in of)
        for each in wrappers(run)
    )
