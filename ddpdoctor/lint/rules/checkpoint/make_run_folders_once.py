"""A folder that every rank clears or makes.

## What it does
Finds `shutil.rmtree`, and `os.makedirs` or `mkdir` without `exist_ok=True`, of a path in which no
rank occurs, in code that every rank runs.

## Why is this bad?
The first rank makes the folder, the others crash on it (FileExistsError); a slow rank clears what
another has already written there.

## Example
```python
os.makedirs(folder)
```

## Use instead
```python
if rank == 0:
    os.makedirs(folder)
dist.barrier()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.flow import is_run_by_all, origins
from ddpdoctor.lint.engine.guards import guards
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.rank import is_rank
from ddpdoctor.lint.engine.trees import argument, last_name, text
from ddpdoctor.lint.engine.wrappers import is_private, keyword_is
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP514"
NAME = "shared-path-race"
CONFIDENCE: Confidence = "likely"
WORDS = ("rmtree", "makedirs", "mkdir")
FACTS = ("init",)

_MAKES = ("os.makedirs", "os.mkdir")


def check(module: Module) -> Iterator[Hit]:
    """Yield folders that all ranks clear or make at once."""
    for call in module.calls:
        name = module.names.get(call, "")
        path = argument(call, 0, "path") or argument(call, 0, "name")
        clears = name == "shutil.rmtree"
        if not clears and name not in _MAKES:
            if not isinstance(call.func, ast.Attribute) or call.func.attr != "mkdir":
                continue
            path = call.func.value
        if path is None or (not clears and _may_exist(module, call)):
            continue
        if _is_of_one(module, path) or not is_run_by_all(module, call):
            continue
        does = "clears" if clears else "makes"
        harm = "what another has written is lost" if clears else "all but the first crash"
        yield Hit(
            call,
            f"every rank {does} `{text(path, 30)}`: {harm}",
            help="on rank 0 alone, with a barrier behind it",
        )


def _may_exist(module: Module, call: ast.Call) -> bool:
    """Whether a folder that is there already does no harm."""
    if not keyword_is(call, "exist_ok", False) and any(e.arg == "exist_ok" for e in call.keywords):
        return True
    handled = any(isinstance(each, ast.Try) for each in module.ancestors(call))
    asked = any(
        "exist" in text(each.test, 200) or "isdir" in text(each.test, 200)
        for each in guards(module, call)
    )
    return handled or asked


def _is_of_one(module: Module, path: ast.expr) -> bool:
    """Whether a path is this process's own: a temporary folder, or with the rank in its name."""
    if is_private(module, path):
        return True
    return any(
        is_rank(module, part) or "rank" in last_name(part).lower() or "tmp" in text(part, 100)
        for each in origins(module, path)
        for part in ast.walk(each)
        if isinstance(part, ast.expr)
    )
