"""Best checkpoint by one rank's metric.

## What it does
Finds comparisons such as `if val_loss < best:` on a metric that was not reduced over the ranks,
where a checkpoint is saved under it.

## Why is this bad?
Each rank saw its own shard: the "best" model is the best of a fraction of the data, and each rank
believes in another epoch.

## Example
```python
accuracy = evaluate(model, shard)
if accuracy > best:
    best = accuracy
    torch.save(model.state_dict(), path)
```

## Use instead
```python
accuracy = evaluate(model, shard)
dist.all_reduce(accuracy, op=dist.ReduceOp.AVG)
if accuracy > best:
    ...
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Way, events
from ddpdoctor.lint.engine.queries.sharding import shards
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP214", name="metric-not-reduced", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield saves that hang on a metric of this rank alone."""
    if not shards(run) or not any(True for _ in events(run.root, "wrap")):
        return
    told: set[int] = set()
    for _, way in events(run.root, "save"):
        choice = _chosen(way)
        if choice is None or id(choice.test) in told:
            continue
        told.add(id(choice.test))
        yield Hit(
            choice.test,
            "the best checkpoint is chosen by this rank's own metric",
            why=choice.condition.why,
            help="sum the metric and its count over the ranks first",
            path=choice.path,
        )


def _chosen(way: Way) -> Choice | None:
    """The condition on a rank's own data around a save that remembers what it has found."""
    for number, step in enumerate(way[:-1]):
        choice = step.node
        if not isinstance(choice, Choice):
            continue
        agree = choice.condition.agree
        arm = next((each for each in choice.arms if each.body is way[number + 1].seq), None)
        if agree.cause == "data" and agree.sure and arm is not None and arm.writes:
            return choice
    return None
