"""A mean over what this rank has, in a loss that DDP averages again.

## What it does
Finds a loss of the form `sum / mask.sum()` that is backwarded under DDP without the count having
been summed over the ranks.

## Why is this bad?
DDP averages the ranks' gradients. A rank with three masked tokens then weighs as much as one with
three hundred: the gradient is not that of one process with all the data.

## Example
```python
loss = (losses * mask).sum() / mask.sum()
loss.backward()
```

## Use instead
```python
count = mask.sum()
dist.all_reduce(count)
loss = (losses * mask).sum() * dist.get_world_size() / count
loss.backward()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import events
from ddpdoctor.lint.engine.interpreter.values import Tuple, Value
from ddpdoctor.lint.engine.queries.wrapping import computed_from, made_by
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP309", name="mean-of-means", confidence="likely")

_DIVIDES = ("Div", "div", "true_divide", "div_")
_COUNTS = ("sum", "count_nonzero")
_SAME_COUNT = (
    *("clamp", "clamp_", "clamp_min", "clip", "max", "float", "to", "item", "Add"),
    *("tensor", "as_tensor"),
)


def check(run: Run) -> Iterator[Hit]:
    """Yield losses that are divided by a count of this rank's own."""
    wrappers = {
        getattr(event.values["wrapper"].what, "number", 0) for event, _ in events(run.root, "wrap")
    }
    if not wrappers:
        return
    told: set[int] = set()
    for event, _ in events(run.root, "backward"):
        for _, made in computed_from(run, event.values["loss"]):
            if made.by not in _DIVIDES or id(made.node) in told or len(made.of) < 2:
                continue
            sum_, count = made.of[:2]
            if made_by(sum_) & wrappers and _is_own_count(run, count) and _is_sum(run, sum_):
                told.add(id(made.node))
                yield Hit(
                    made.node,
                    "this rank's sum is divided by this rank's count, and DDP averages the means",
                    notes=("the count is of this rank's own data",),
                    help="divide by the count of all ranks, times their number (DDP divides by it)",
                    path=made.path,
                )


_OWN = [("local", cause) for cause in ("data", "shard", "chance", "")]
"""Without a cause: what a number of the rank's own has made of a tensor."""


def _is_own_count(run: Run, value: Value) -> bool:
    """Whether it counts what this rank has, without gradient."""
    agree = value.agree
    if agree.kind != "rank" and (agree.kind, agree.cause) not in _OWN:
        return False
    made = run.vm.made.get(value.what)
    while made is not None and made.by in _SAME_COUNT and made.of:
        inner = made.of[0].what
        if isinstance(inner, Tuple) and len(inner.items) == 1:
            inner = inner.items[0].what
        made = run.vm.made.get(inner)
    if made is None or made.by not in _COUNTS or any(map(made_by, made.of)):
        return False
    return len(made.of) == 1  # a sum along one dimension counts for each sample by itself


def _is_sum(run: Run, value: Value) -> bool:
    """Whether a sum of losses is divided, and not a mean."""
    return any(
        made.by in _COUNTS or any(each.is_const("sum") for each in made.of)
        for _, made in computed_from(run, value)
    )
