"""Batch statistics of a handful of samples.

## What it does
Finds models with BatchNorm that are wrapped in DDP without `convert_sync_batchnorm`, in files whose
batch on each rank is four samples or fewer. And those with `broadcast_buffers=False` that all ranks
evaluate, to put together what they find.

## Why is this bad?
DDP averages gradients; each rank normalises by the mean and variance of its own few samples, and
rank 0's running statistics win. The model is not the one that a single process trains. Without the
broadcast each rank keeps running statistics of its own samples: a metric over the ranks is that of
no model, and what rank 0 saves does otherwise.

## Example
```python
model = DDP(nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)))
loader = DataLoader(data, batch_size=2, sampler=sampler)
```

## Use instead
```python
net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
model = DDP(net)
loader = DataLoader(data, batch_size=2, sampler=sampler)
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.machine import Made
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Loop, events
from ddpdoctor.lint.engine.interpreter.values import EVERYONE, NONE, Place, Ref, What
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.reducing import shared_in
from ddpdoctor.lint.engine.queries.wrapping import computed_from, made_by, mentioned, origins, parts
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP312", name="unsynchronised-batchnorm", confidence="likely")

_FEW = 4
_BATCH = re.compile(r"^(batch|batch_?size|per_rank(_batch)?)$", re.I)


def check(run: Run) -> Iterator[Hit]:
    """Yield wraps of models that normalise by few samples, or on each rank otherwise."""
    yield from _evaluated_apart(run)
    for wrap, _ in events(run.root, "wrap"):
        module = wrap.values["module"].what
        inside = parts(run, module)
        if not any(_normalises(run, number) for number in inside) or _is_converted(run, inside):
            continue
        few = _few(run) or _few_by_name(run, wrap)
        if few:
            yield Hit(
                wrap.node,
                "BatchNorm normalises by the few samples of each rank: nothing synchronises it",
                notes=(Related.at(few, "the batch of a rank is set"),),
                help="nn.SyncBatchNorm.convert_sync_batchnorm(net) before the wrap",
                path=wrap.path,
            )


def _evaluated_apart(run: Run) -> Iterator[Hit]:
    """Wraps whose ranks normalise by statistics of their own, and put together what they find."""
    for wrap, _ in events(run.root, "wrap"):
        inside = parts(run, wrap.values["module"].what)
        if not wrap.values.get("kw_broadcast_buffers", NONE).is_const(False):
            continue
        if not any(_normalises(run, each) for each in inside) or _is_converted(run, inside):
            continue
        wrapper = wrap.values["wrapper"].what
        models = {Ref(each) for each in inside} | {wrapper}
        losses = (event.values["loss"] for event, _ in events(run.root, "backward"))
        learns = any(Ref(number) == wrapper for loss in losses for number in made_by(loss))
        if not learns or _are_shared(run, models):
            continue
        evaluated = {
            id(event.node): event
            for event, way in events(run.root, "forward", "bare_forward")
            if event.values["model"].what in models
            and "no_grad" in event.scopes
            and doers(way).mask == EVERYONE
        }
        found = next((x for x in _put_together(run) if id(x.node) in evaluated), None)
        if found is not None:
            yield Hit(
                wrap.node,
                "each rank evaluates with running statistics of its own: what the ranks put "
                "together is of no one model",
                notes=(Related.at(evaluated[id(found.node)].place, "all ranks evaluate it"),),
                help="reduce the running statistics before, or convert to SyncBatchNorm",
                path=wrap.path,
            )


def _are_shared(run: Run, models: set[What]) -> bool:
    """Whether a collective is given any of what these modules hold."""
    if shared_in(run, models):
        return True
    given = (each.values.get("shares", NONE) for each, _ in events(run.root, "collective"))
    return any(mentioned(run, one) & models for each in given for one in origins(run, each))


def _put_together(run: Run) -> Iterator[Made]:
    """How what the ranks exchange was computed, and what was added to it before."""
    roles = ("shares", "gives", "adds")
    given = [
        event.values[role]
        for event, _ in events(run.root, "collective")
        for role in roles
        if role in event.values
    ]
    shared = {each.what for each in given}
    for event, _ in events(run.root, "change"):
        owner = event.values["object"]
        if "by" in event.values and any(each.what in shared for each in origins(run, owner)):
            given.append(event.values["by"])
    for value in given:
        for _, step in computed_from(run, value):
            yield step


def _normalises(run: Run, number: int) -> bool:
    made = run.vm.objects.get(number)
    return made is not None and made.effect is not None and made.effect.option("has") == "batch"


def _is_converted(run: Run, inside: set[int]) -> bool:
    return any(
        isinstance(each, Ref) and each.number in inside
        for event, _ in events(run.root, "sync_batchnorm")
        for each in mentioned(run, event.values["object"])
    )


def _few(run: Run) -> Place | None:
    """Where a loader of few samples is made that is trained on."""
    trained: set[object] = set()
    for event, way in events(run.root, "iterate"):
        step = way[-1]
        after = step.rest[0] if step.rest else None
        if isinstance(after, Loop) and any(True for _ in events(after.body, "backward")):
            trained |= mentioned(run, event.values["over"])
    for event, _ in events(run.root, "new"):
        size = event.values.get("batch_size")
        if size is not None and event.values["object"].what in trained:
            few = isinstance(size.constant, int) and size.constant <= _FEW
            if few and event.name.endswith("DataLoader"):
                return event.place
    return None


def _few_by_name(run: Run, wrap: Event) -> Place | None:
    """A constant of this function or file that is called a batch."""
    source = run.source(wrap.path)
    if source is None:
        return None
    around = source.statement(wrap.place.line)[2]
    for node in source.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
            continue
        if source.statement(node.lineno)[2] not in (around, "<module>"):
            continue
        size = node.value.value
        if isinstance(size, int) and size <= _FEW:
            for target in node.targets:
                if isinstance(target, ast.Name) and _BATCH.match(target.id):
                    return Place(wrap.path, node.lineno)
    return None
