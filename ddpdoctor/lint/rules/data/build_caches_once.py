"""A cache that every rank builds.

## What it does
Finds `if not os.path.exists(path):` whose body writes that file, in code that every rank runs.

## Why is this bad?
All ranks find it missing at the same moment and write it at once. One reads what another has only
half written: EOFError, "pickle data was truncated", or silently a short list.

## Example
```python
if not os.path.exists(cache):
    build(cache)
data = torch.load(cache)
```

## Use instead
```python
if rank == 0 and not os.path.exists(cache):
    build(cache)
dist.barrier()
data = torch.load(cache)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.flow import is_run_by_all
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import argument, dotted, is_constant, last_name, text
from ddpdoctor.lint.engine.wrappers import is_private
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP212"
NAME = "cache-race"
CONFIDENCE: Confidence = "likely"
WORDS = ("exists(", "is_file(", "isfile(")
FACTS = ("init", "collectives")

_ASKS = ("exists", "isfile", "is_file")
_WRITES = {"torch.save": 1, "numpy.save": 0, "numpy.savez": 0, "pandas.to_pickle": 1}


def check(module: Module) -> Iterator[Hit]:
    """Yield caches that are looked for and built by all ranks at once."""
    for branch in module.ifs:
        path = _missing(branch.test)
        if path is None or is_private(module, path):
            continue
        if _writes(module, branch.body, path) and is_run_by_all(module, branch):
            yield Hit(
                branch.test,
                f"every rank finds `{text(path, 30)}` missing, and all write it at once",
                help="let rank 0 build it, then a barrier, then all read",
            )


def _missing(test: ast.expr) -> ast.expr | None:
    """`p` of `not os.path.exists(p)` and `not p.exists()`."""
    if not isinstance(test, ast.UnaryOp) or not isinstance(test.op, ast.Not):
        return None
    call = test.operand
    if not isinstance(call, ast.Call) or last_name(call.func) not in _ASKS:
        return None
    if call.args:
        return call.args[0]
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def _writes(module: Module, body: list[ast.stmt], path: ast.expr, depth: int = 2) -> bool:
    """Whether statements write the file, or call a function of this file that writes it."""
    shown = text(path, 200)
    for statement in body:
        for call in module.within(statement):
            if not isinstance(call, ast.Call):
                continue
            written = _written(module, call)
            if written is not None and text(written, 200) == shown:
                return True
            for function in module.called.get(call, ()) if depth else ():
                if _is_same(module, path, function) and _writes(
                    module, function.body, path, depth - 1
                ):
                    return True
    return False


def _written(module: Module, call: ast.Call) -> ast.expr | None:
    """The path that a call writes to."""
    name = module.names.get(call, "")
    if name in _WRITES:
        return argument(call, _WRITES[name], "f")
    if name == "open":
        mode = argument(call, 1, "mode")
        return call.args[0] if call.args and is_constant(mode, "w", "wb", "w+", "wt") else None
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("write_text", "write_bytes"):
        return call.func.value
    return None


def _is_same(module: Module, path: ast.expr, function: ast.AST) -> bool:
    """Whether the path's name means the same in a function: a global, or an attribute of self."""
    name = dotted(path).partition(".")[0]
    return (
        bool(name)
        and not module.binds(function, name)
        and not (
            module.function(path) is not None and module.binds(module.function(path) or path, name)
        )
    )
