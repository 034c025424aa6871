"""Learning rate from a rank's own metric.

## What it does
Finds `ReduceLROnPlateau.step(metric)` with a metric that is not reduced over the ranks.

## Why is this bad?
Each rank sees another metric, and lowers its learning rate in another epoch: from then on the
ranks train different models, silently.

## Example
```python
scheduler.step(val_loss)
```

## Use instead
```python
dist.all_reduce(val_loss, op=dist.ReduceOp.AVG)
scheduler.step(val_loss)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import events
from ddpdoctor.lint.engine.queries.doing import is_distributed
from ddpdoctor.lint.engine.queries.sharding import LOADER, made, passes, shards
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP216", name="scheduler-on-local-metric", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield plateau schedulers that step on what only this rank knows."""
    if not is_distributed(run):
        return
    for event, _ in events(run.root, "schedule"):
        metric, scheduler = event.values.get("metric"), event.values.get("object")
        if metric is None or scheduler is None or metric.agree.kind != "local":
            continue
        if not run.vm.type_of(scheduler).endswith("ReduceLROnPlateau"):
            continue
        if not metric.agree.sure and _evaluates_everything(run):
            continue
        yield Hit(
            event.node,
            "the learning rate follows this rank's own metric: the ranks part",
            why=metric.why,
            help="reduce the metric over the ranks first",
            path=event.path,
        )


def _evaluates_everything(run: Run) -> bool:
    """Whether each rank may run through all of some data, and so find the same."""
    whole = made(run, LOADER).keys() - shards(run).keys()
    return any(each.loaders & whole for each in passes(run))
