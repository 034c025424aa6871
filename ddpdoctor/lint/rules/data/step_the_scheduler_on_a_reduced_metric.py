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
from ddpdoctor.lint.engine.interpreter.values import Value
from ddpdoctor.lint.engine.queries.doing import is_distributed
from ddpdoctor.lint.engine.queries.sharding import LOADER, is_dealt_out, made, passes, shards
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
        if not metric.agree.sure and _is_of_everything(run, metric):
            continue
        yield Hit(
            event.node,
            "the learning rate follows this rank's own metric: the ranks part",
            why=metric.why,
            help="reduce the metric over the ranks first",
            path=event.path,
        )


def _is_of_everything(run: Run, metric: Value) -> bool:
    """Whether each rank may run through all of the data that a metric is of, and find the same."""
    loaders = made(run, LOADER)
    dealt = {number for number, loader in loaders.items() if is_dealt_out(run, loader)}
    whole = frozenset(loaders.keys() - shards(run).keys() - dealt)
    of = metric.why.root.place if metric.why is not None else None
    own = [each.loaders for each in passes(run) if each.event.place == of]
    return any(each & whole for each in own or [whole])
