"""mp.spawn without a main guard.

## What it does
Finds `mp.spawn` at the top level of a module, outside of `if __name__ == "__main__":`.

## Why is this bad?
Each child imports the module anew, and starts children of its own: RuntimeError "An attempt has
been made to start a new process before the current process has finished its bootstrapping phase".

## Example
```python
mp.spawn(train, nprocs=4)
```

## Use instead
```python
if __name__ == "__main__":
    mp.spawn(train, nprocs=4)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.loading import is_main_guard
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import events
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP113", name="unguarded-spawn", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield process starts that run again in every child."""
    source = run.source(run.path)
    if source is None or not run.is_entry or run.path.endswith(".ipynb"):
        return
    guarded = {
        id(node)
        for statement in source.tree.body
        if is_main_guard(statement)
        for node in ast.walk(statement)
    }
    for event, way in events(run.root, "spawn"):
        method = event.values.get("method")
        if method is not None and method.is_const("fork"):
            continue
        first = way[0].node
        if id(first.node) not in guarded and first.path == run.path:
            yield Hit(
                first.node,
                "children that import this module start children again: no `__main__` guard",
                help='put it under `if __name__ == "__main__":`',
                path=run.path,
            )
