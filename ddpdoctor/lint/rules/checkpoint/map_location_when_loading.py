"""Load without map_location.

## What it does
Finds `torch.load` without `map_location` where every rank runs it.

## Why is this bad?
The tensors go where they were saved, which is cuda:0 for all ranks: N copies on one device, out of
memory there.

## Example
```python
state = torch.load(path)
```

## Use instead
```python
state = torch.load(path, map_location="cpu")
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.edits import add_argument
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    Const,
    Either,
    Ref,
    Term,
    Value,
    What,
    is_device,
    within,
)
from ddpdoctor.lint.engine.queries.doing import doers, is_for_one
from ddpdoctor.lint.engine.queries.holding import facts
from ddpdoctor.lint.engine.queries.paths import same_path
from ddpdoctor.lint.engine.queries.states import is_of
from ddpdoctor.lint.rule import About, Fix, Hit

ABOUT = About(code="DDP510", name="loads-on-one-device", confidence="likely")

_HAS_DEVICES = re.compile(r"cuda|nccl|device|xpu|accelerat", re.I)


def check(run: Run) -> Iterator[Hit]:
    """Yield loads that all go to the device they were saved from."""
    if not any(True for _ in events(run.root, "wrap")) or _is_on_the_cpu(run) or is_for_one(run):
        return
    for event, way in events(run.root, "load"):
        path, source = event.values.get("path"), run.source(event.path)
        if "map_location" in event.values or path is None or _is_private(path):
            continue
        if source is None or not _HAS_DEVICES.search(source.source.text):
            continue
        call = event.node
        if not isinstance(call, ast.Call) or not doers(way).mask & ~1:
            continue
        if any(keyword.arg is None for keyword in call.keywords) or not _is_state(run, event):
            continue
        if _has_all_devices(run, way) or _was_on_the_cpu(run, event):
            continue
        edit = add_argument(source, call, 'map_location="cpu"')
        yield Hit(
            call,
            "every rank loads to the device that it was saved from: N copies on cuda:0",
            help='map_location="cpu" (or this rank\'s own device)',
            fix=Fix((edit,)) if edit else None,
            path=event.path,
        )


def _is_on_the_cpu(run: Run) -> bool:
    """Whether who places the models has been told that it is the CPU."""
    return any(event.values.get("cpu", NONE).is_const(True) for event, _ in events(run.root, "new"))


def _was_on_the_cpu(run: Run, load: Event) -> bool:
    """Whether the program has saved there what it had taken to the CPU, and loads that."""
    homes: dict[What, bool] = {}
    saved: list[bool] = []
    for event, _ in events(run.root, "convert", "save", "load"):
        if event is load:
            break
        if event.kind == "convert" and event.name in ("to", "cpu", "cuda"):
            homes[_bare(run, event.values["object"].what)] = _names_the_cpu(event)
        elif event.kind == "save" and same_path(event.values.get("path"), load.values["path"]):
            state = event.values.get("object", NONE).what
            inside = [_bare(run, each) for each in within(state) if isinstance(each, Ref | Term)]
            at_home = [homes.get(x, False) for x in inside if isinstance(x, Ref) or x in homes]
            saved.append(bool(at_home) and all(at_home))
    return bool(saved) and all(saved)


def _bare(run: Run, module: What) -> What:
    """A module without the wrapper around it."""
    inner = run.vm.store.get((module, "module"))
    return inner.what if inner is not None else module


def _names_the_cpu(convert: Event) -> bool:
    at = convert.values.get("arg0", convert.values.get("kw_device", NONE)).what
    device = at.args[1] if is_device(at) else at
    return convert.name == "cpu" or device == Const("cpu")


def _has_all_devices(run: Run, way: Way) -> bool:
    """Whether there is no device to bind the process to: it is the only one of its machine."""
    bound = {event.values.get("device", NONE).what for event, _ in events(run.root, "set_device")}
    return any(
        holds
        and isinstance(what, Term)
        and what.op in ("Is", "Eq")
        and what.args[1:] == (NONE.what,)
        and what.args[0] in bound
        for what, holds in facts(way)
    )


def _is_private(path: Value) -> bool:
    """Whether each rank has a file of its own: what hosts may name otherwise is one on each."""
    return path.agree.divergent and path.agree.cause != "machine"


def _is_state(run: Run, load: Event) -> bool:
    """Whether a model or an optimizer takes what is loaded: schedules are numbers."""
    return any(
        is_of(state.what, load)
        for event, _ in events(run.root, "load_state")
        if (state := event.values.get("state")) is not None and not _is_schedule(run, event)
    )


def _is_schedule(run: Run, load_state: Event) -> bool:
    owner = load_state.values.get("object", NONE)
    options = owner.what.options if isinstance(owner.what, Either) else (owner,)
    return all(run.vm.type_of(each).startswith("torch.optim.lr_scheduler.") for each in options)
