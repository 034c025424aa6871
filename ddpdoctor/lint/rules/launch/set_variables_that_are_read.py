"""Environment variable that nobody reads.

## What it does
Finds variables set in the environment that neither PyTorch nor NCCL reads (any more), and
variables set after the process group has been initialised. An old name that PyTorch still reads is
told as information.

## Why is this bad?
`NCCL_TIMEOUT` is the best-known: it is in many guides, and nothing reads it. The job behaves as if
it had not been set, and nobody is told.

## Example
```python
os.environ["NCCL_TIMEOUT"] = "3600"
dist.init_process_group("nccl")
```

## Use instead
```python
dist.init_process_group("nccl", timeout=timedelta(hours=1))
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Way, events
from ddpdoctor.lint.engine.queries.order import is_after
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP109", name="variable-ignored", confidence="certain")

_TOO_LATE = re.compile(r"^(NCCL_|TORCH_NCCL_|GLOO_|MASTER_ADDR$|MASTER_PORT$)")


def check(run: Run) -> Iterator[Hit]:
    """Yield variables that are set in vain."""
    joined: list[Way] = []
    late: list[tuple[Event, str, Way]] = []
    for event, way in events(run.root, "init", "leave", "setenv"):
        if event.kind == "leave":
            joined = []
        if event.kind == "init":
            joined.append(way)
            late = [each for each in late if not is_after(each[-1], way)]  # this one reads it
        if event.kind != "setenv":
            continue
        name = event.values["name"].constant
        if not isinstance(name, str):
            continue
        if hit := _unread(event.node, name, event.path):
            yield hit
        elif _TOO_LATE.match(name) and any(is_after(each, way) for each in joined):
            late.append((event, name, way))
    for event, name, _ in late:
        yield Hit(
            event.node,
            f"{name} is set after init_process_group(), which has already read it",
            help="set it before the process group is initialised, best before the launch",
            confidence="likely",
            path=event.path,
        )


def _unread(node: ast.AST, name: str, path: str) -> Hit | None:
    """A word on a variable that nobody reads, or nobody reads any more."""
    # Late: few files set such a variable, and the table's package takes time to import.
    from ddpdoctor.environment.variables import known

    row = known().get(name)
    if row is None or row.status not in ("phantom", "legacy", "removed"):
        return None
    if row.status == "phantom":
        message = f"{name} has no effect: nothing in PyTorch or NCCL reads it"
    elif row.status == "legacy":
        message = f"{name} is an old name: PyTorch still reads it, for now"
    else:
        message = f"{name} has no effect any more: newer versions do not read it"
    return Hit(
        node,
        message,
        notes=(row.note,) if row.note else (),
        help=row.instead or "drop it",
        confidence=None if row.status == "phantom" else "likely",
        harmless=row.status == "legacy",
        path=path,
    )
