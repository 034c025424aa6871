"""A backend, or device_ids, for a GPU that may not be there.

## What it does
Finds `init_process_group("nccl")`, and `DistributedDataParallel(device_ids=[...])`, without a
condition, where the script itself puts the model on the CPU if there is no GPU.

## Why is this bad?
On a machine without a GPU the script chooses the CPU, and then fails: NCCL has no device, and DDP
refuses device_ids for a module on the CPU.

## Example
```python
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
dist.init_process_group("nccl")
model = DDP(net.to(device), device_ids=[local_rank])
```

## Use instead
```python
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
model = DDP(net.to(device), device_ids=[local_rank] if device.type == "cuda" else None)
```
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import NONE, Either, Term, Value, What, term
from ddpdoctor.lint.engine.queries.holding import facts, stand_apart
from ddpdoctor.lint.engine.queries.order import beyond, is_after
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP116", name="backend-device-mismatch", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield the choices for a GPU that the script itself can do without."""
    if _joins_on_gpus_alone(run):
        return
    on_either = [
        event
        for event, way in events(run.root, "wrap")
        if _may_be_cpu(run, event.values["module"], _bound(run, way))
        and not _is_where_gpus_are(way)
        and not _had_a_gpu(run, way)
    ]
    for event in on_either:
        ids = event.values.get("kw_device_ids")
        if ids is not None and run.vm.type_of(ids) == "list":
            yield Hit(
                event.node,
                "device_ids are given although the module may be on the CPU: DDP refuses that",
                help="pass device_ids=None where the device is the CPU",
                path=event.path,
            )
    for event, _ in events(run.root, "init"):
        backend = event.values.get("backend")
        if on_either and backend is not None and backend.is_const("nccl"):
            yield _wrong_backend(event)


def _joins_on_gpus_alone(run: Run) -> bool:
    """Whether each choice of the CPU stands on the other arm of a choice from who joins a group."""
    joins = [way for _, way in events(run.root, "init")]
    on_cpu = [way for each, way in events(run.root, "device") if _kind_of(each) == "cpu"]
    return bool(joins and on_cpu) and all(
        stand_apart(one, other) for one in joins for other in on_cpu
    )


def _kind_of(device: Event) -> str:
    return str(device.values.get("type", NONE).constant).partition(":")[0]


def _wrong_backend(event: Event) -> Hit:
    return Hit(
        event.node,
        "the backend is NCCL although the model may be on the CPU: it has no device there",
        help='choose by the device: "nccl" for CUDA, "gloo" for the CPU',
        path=event.path,
    )


def _is_where_gpus_are(way: Way) -> bool:
    """Whether it is done only where the machine has GPUs."""
    return (_ASKS, True) in facts(way)


_ASKS = term("lib", "torch.cuda.is_available", 0)
"""The answer to whether there are GPUs."""


def _bound(run: Run, to: Way) -> set[What]:
    """The devices that surely were made the current one before: CUDA refuses the CPU there."""
    found: set[What] = set()
    for event, way in events(run.root, "set_device"):
        own = (step.node for step in beyond(way, to) if step in way)
        if is_after(way, to) and not any(isinstance(each, Choice) for each in own):
            device = event.values.get("device", NONE).what
            found |= {each.what for each in device.options} if isinstance(device, Either) else set()
    return found


def _had_a_gpu(run: Run, to: Way) -> bool:
    """Whether who joins a group has bound a GPU before: where there is none, that fails."""
    joins = {id(step.seq) for _, way in events(run.root, "init") for step in way}
    for _, way in events(run.root, "set_device"):
        passed = pairwise(way)
        arms = (then.seq for step, then in passed if isinstance(step.node, Choice))
        if is_after(way, to) and joins.issuperset(map(id, arms)):
            return True
    return False


def _may_be_cpu(run: Run, module: Value, bound: set[What]) -> bool:
    """Whether a module was moved to a device that is the CPU on some machines alone."""
    device = run.vm.store.get((module.what, "#device"))
    if device is None or not isinstance(device.what, Either):
        return False
    options = device.what.options
    on_cpu = [each.what for each in options if _kind(each) == "cpu"]
    return "cuda" in map(_kind, options) and any(each not in bound for each in on_cpu)


def _kind(device: Value) -> str:
    what = device.what
    if isinstance(what, Term):
        inner = what.args[0 if what.op == "text" else 1] if len(what.args) > 1 else None
        return str(getattr(inner, "value", "")).partition(":")[0]
    return str(device.constant).partition(":")[0]
