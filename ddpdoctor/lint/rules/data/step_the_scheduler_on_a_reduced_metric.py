"""Learning rate of a rank's own.

## What it does
Finds `ReduceLROnPlateau.step(metric)` with a metric that is not reduced over the ranks, and
schedulers that some ranks step, while others step their optimizer.

## Why is this bad?
Each rank sees another metric, and lowers its learning rate in another epoch, or never: from then on
the ranks train different models, silently.

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
from ddpdoctor.lint.engine.interpreter.tree import Loop, Way, events
from ddpdoctor.lint.engine.interpreter.values import EVERYONE, NONE, Value, What
from ddpdoctor.lint.engine.queries.doing import doers, is_distributed, keeps_apart
from ddpdoctor.lint.engine.queries.sharding import LOADER, is_dealt_out, made, passes, shards
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP216", name="scheduler-on-local-metric", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield schedulers that step on what only this rank knows, or on some ranks alone."""
    if not is_distributed(run):
        return
    yield from _on_some(run)
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


def _on_some(run: Run) -> Iterator[Hit]:
    """Schedulers that some ranks step, of optimizers that others step too."""
    steps = [
        (doers(way).mask, each.what)
        for event, way in events(run.root, "step")
        for each in event.values.values()
    ]
    going: dict[What, int] = {}
    for event, way in events(run.root, "schedule"):
        what = event.values.get("object", NONE).what
        going[what] = going.get(what, 0) | doers(way).mask
    told: set[What] = set()
    for event, way in events(run.root, "schedule"):
        what, who = event.values.get("object", NONE).what, doers(way)
        apart = keeps_apart(who.choices)
        optimizer = run.vm.store.get((what, "optimizer"))
        if apart is None or optimizer is None or what in told or going[what] == EVERYONE:
            continue
        others = any(each == optimizer.what and mask & ~going[what] for mask, each in steps)
        if not others or _is_sent(way):
            continue
        told.add(what)
        yield Hit(
            event.node,
            "some ranks step this scheduler, and the others train on with the old learning rate",
            notes=(Related.at(apart.place, "it decides"),),
            why=apart.condition.why,
            help="step the scheduler on every rank",
            path=event.path,
        )


def _is_sent(way: Way) -> bool:
    """Whether something is sent to all in the loop around: it may be what the others lack."""
    loop = next((step.node for step in reversed(way) if isinstance(step.node, Loop)), None)
    sent = events(loop.body, "collective") if loop is not None else ()
    return any(event.name.startswith(("broadcast", "scatter")) for event, _ in sent)


def _is_of_everything(run: Run, metric: Value) -> bool:
    """Whether each rank may run through all of the data that a metric is of, and find the same."""
    loaders = made(run, LOADER)
    dealt = {number for number, loader in loaders.items() if is_dealt_out(run, loader)}
    whole = frozenset(loaders.keys() - shards(run).keys() - dealt)
    of = metric.why.root.place if metric.why is not None else None
    own = [each.loaders for each in passes(run) if each.event.place == of]
    return any(each & whole for each in own or [whole])
