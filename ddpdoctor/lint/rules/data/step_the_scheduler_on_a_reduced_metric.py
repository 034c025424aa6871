"""Learning rate of a rank's own.

## What it does
Finds `ReduceLROnPlateau.step(metric)` with a metric that is not reduced over the ranks, and
schedulers that some ranks step, while others step their optimizer. And a learning rate that is set
by what a rank has seen of its own batches, or by how far it has come, or that an optimizer is made
with and each rank has drawn for itself.

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
from ddpdoctor.lint.engine.interpreter.tree import Choice, Loop, Way, events
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    NONE,
    Value,
    What,
    local,
)
from ddpdoctor.lint.engine.queries.doing import doers, is_distributed, keeps_apart
from ddpdoctor.lint.engine.queries.rates import settings
from ddpdoctor.lint.engine.queries.sharding import LOADER, is_dealt_out, made, passes, shards
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP216", name="scheduler-on-local-metric", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield schedulers that step on what only this rank knows, or on some ranks alone."""
    if not is_distributed(run):
        return
    yield from _on_some(run)
    yield from _set_by_own(run)
    for event, _ in events(run.root, "schedule"):
        metric, scheduler = event.values.get("metric"), event.values.get("object")
        if metric is None or scheduler is None or metric.agree.kind != "local":
            continue
        if not run.vm.type_of(scheduler).endswith("ReduceLROnPlateau"):
            continue
        if not metric.agree.sure and _is_of_everything(run, metric):
            continue
        if metric.agree.cause in _OF_NO_METRIC:
            continue
        yield Hit(
            event.node,
            "the learning rate follows this rank's own metric: the ranks part",
            why=metric.why,
            help="reduce the metric over the ranks first",
            path=event.path,
        )


_OF_NO_METRIC = ("exception", "signal", "clock", "disk")
"""What parts numbers of steps, and of epochs: other rules tell of that."""


def _set_by_own(run: Run) -> Iterator[Hit]:
    """Learning rates of optimizers that are set by what the ranks do not share."""
    stepped = {
        value.what
        for event, way in events(run.root, "step")
        for value in event.values.values()
        if doers(way).mask == EVERYONE
    }
    told: set[int] = set()
    if not any(True for _ in events(run.root, "wrap")):
        return
    for event, way, optimizer in settings(run):
        asked = [step.node.condition for step in way if isinstance(step.node, Choice)]
        value = event.values["value"]
        own = value if _parts_for_sure(value) else next(filter(_is_own, (value, *asked)), None)
        if id(event.node) not in told and optimizer in stepped and own is not None:
            told.add(id(event.node))
            yield Hit(
                event.node,
                "the learning rate follows what this rank alone has seen: the ranks part",
                why=own.why,
                help="reduce over the ranks what decides it first",
                path=event.path,
            )

    for event, way in events(run.root, "new", "collective"):
        if event.kind == "collective" and event.name.startswith(_SENDS):
            return  # what one rank has drawn, perhaps
        if event.kind == "collective":
            continue
        rate, optimizer = event.values.get("lr", NONE), event.values["object"].what
        if optimizer not in stepped or doers(way).mask != EVERYONE or id(event.node) in told:
            continue
        if _parts_for_sure(rate) and run.vm.type_of(event.values["object"]) == _OPTIMIZER:
            told.add(id(event.node))
            yield Hit(
                event.node,
                "each rank makes its optimizer with a learning rate of its own: the ranks part",
                why=rate.why,
                help="draw it on rank 0, and broadcast it",
                path=event.path,
            )


_SENDS = ("broadcast", "scatter")
_OPTIMIZER = "torch.optim.Optimizer"
_WITHOUT_OTHERS = (local("chance"), local(""))
"""Of what each rank draws for itself, or reckons by what is its own."""


def _parts_for_sure(value: Value) -> bool:
    """Whether the rank decides a number, or each rank comes to one of its own."""
    return value.agree.sure and (value.agree.kind == "rank" or value.agree in _WITHOUT_OTHERS)


def _is_own(value: Value) -> bool:
    return value.agree.kind == "local" and value.agree.sure and value.agree.cause == "data"


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
