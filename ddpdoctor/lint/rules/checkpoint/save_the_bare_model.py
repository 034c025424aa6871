"""State of the wrapper saved.

## What it does
Finds `ddp_model.state_dict()` that goes into `torch.save`, in programs that load it into a bare
model.

## Why is this bad?
Every key begins with `module.`: loaded into a bare model it raises, and with `strict=False`
nothing is loaded at all, silently.

## Example
```python
torch.save(ddp_model.state_dict(), path)
```

## Use instead
```python
torch.save(ddp_model.module.state_dict(), path)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import PurePath

from ddpdoctor.lint.edits import replace
from ddpdoctor.lint.engine.interpreter.library.sharding import PARTS_OF_STATE
from ddpdoctor.lint.engine.interpreter.objects import members
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import text
from ddpdoctor.lint.engine.queries.sharding import numbers
from ddpdoctor.lint.engine.queries.states import is_of, parts
from ddpdoctor.lint.rule import About, Fix, Hit

ABOUT = About(code="DDP508", name="module-prefix", confidence="likely")

_WRAPPER = "DistributedDataParallel"
_OF_FSDP = {"fsdp_state", PARTS_OF_STATE}
_PREFIX = ('"module.', "'module.")
_BARE_ALL_THE_SAME = ("setup", "setup_module")
"""Wraps of libraries whose wrapper gives the state without a prefix."""


def check(run: Run) -> Iterator[Hit]:
    """Yield saved states whose keys carry the wrapper's prefix."""
    wrappers = _wrappers(run)
    if not wrappers or _takes_it_off(run):
        return
    told: set[int] = set()
    for save, _ in events(run.root, "save"):
        for key, value in parts(run, save.values.get("object")):
            owner = members.owner_of(value.what, "state_dict")
            if owner is None or owner.number not in wrappers or not _is_read_bare(run, save, key):
                continue
            state = _asked_for(run, owner.number, save)
            if state is None or not _OF_FSDP.isdisjoint(state.scopes):
                continue  # FSDP takes its own names off
            if id(state.node) not in told:
                told.add(id(state.node))
                yield _hit(run, state, save)


def _wrappers(run: Run) -> set[int]:
    """The wrappers that no load brings a state back into."""
    found = {
        number
        for event, _ in events(run.root, "wrap")
        if event.name not in _BARE_ALL_THE_SAME
        for number in numbers(event.values.get("wrapper"))
    }
    for event, _ in events(run.root, "load_state"):
        found -= numbers(event.values.get("object"))
    return found


def _takes_it_off(run: Run) -> bool:
    """Whether anything in the program knows of the prefix."""
    sources = [run.source(path) for path in sorted(run.vm.files)]
    return any(word in each.source.text for each in sources if each for word in _PREFIX)


def _is_read_bare(run: Run, save: Event, key: str) -> bool:
    """Whether a model that is not wrapped loads what is saved under this key, here or beside."""
    ran = {id(event.node) for event, _ in events(run.root, "load_state")}
    for event, _ in events(run.root, "load_state"):
        state = event.values.get("state")
        if state is not None and is_of(state.what, save):
            return True
    return any(
        _key_of(call) == key and id(call) not in ran
        for tree in _files_around(run)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
    )


def _files_around(run: Run) -> Iterator[ast.Module]:
    """The program's own files, and those in its folder that wrap nothing."""
    loader, folder = run.vm.program.loader, PurePath(run.path).parent
    for path in dict.fromkeys((*sorted(run.vm.files), *loader.files)):
        text = loader.text(path)
        if text is None or "load_state_dict" not in text.source.text:
            continue
        is_beside = PurePath(path).parent == folder and _WRAPPER not in text.source.text
        if path in run.vm.files or is_beside:
            yield text.tree


def _key_of(call: ast.Call) -> str | None:
    """The key in `model.load_state_dict(state["net"])`, "" where the whole is loaded."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "load_state_dict":
        return None
    match call.args:
        case [ast.Subscript(slice=ast.Constant(value=str(key))), *_]:
            return key
        case [_, *_]:
            return ""
    return None


def _asked_for(run: Run, number: int, save: Event) -> Event | None:
    """Where the state was asked for, last before it is saved."""
    found: Event | None = None
    for event, _ in events(run.root, "state", "save"):
        if event is save:
            break
        if event.kind == "state" and number in numbers(event.values.get("object")):
            found = event
    return found


def _hit(run: Run, state: Event, save: Event) -> Hit:
    node, source = state.node, run.source(state.path)
    func = node.func if isinstance(node, ast.Call) else None
    inner = func.value if isinstance(func, ast.Attribute) else None
    name = text(inner, 40) if inner is not None else "model"
    loose = _is_loaded_loosely(run, save)
    fix = None
    if source is not None and inner is not None:
        fix = Fix((replace(source, inner, f"{name}.module"),), safe=False)
    return Hit(
        node,
        f"the state of the wrapper `{name}` is saved: every key begins with `module.`",
        notes=("strict=False hides it: nothing is loaded",) if loose else (),
        help=f"`{name}.module.state_dict()`",
        fix=fix,
        confidence="certain" if loose and run.is_entry else "likely",
        path=state.path,
    )


def _is_loaded_loosely(run: Run, save: Event) -> bool:
    """Whether what is saved is loaded with `strict=False`, which drops every key."""
    for event, _ in events(run.root, "load_state"):
        strict, state = event.values.get("kw_strict"), event.values.get("state")
        loose = strict is not None and strict.is_const(False)
        if loose and state is not None and is_of(state.what, save):
            return True
    return False
