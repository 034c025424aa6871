"""A process group that is joined twice.

## What it does
Finds two unconditional ways to `init_process_group` in one function, with no
`destroy_process_group` in the file.

## Why is this bad?
"trying to initialize the default process group twice!": every rank crashes at the second.

## Example
```python
dist.init_process_group("nccl")
logger = Logger()  # joins too, to learn its rank
```

## Use instead
```python
if not dist.is_initialized():
    dist.init_process_group("nccl")
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from ddpdoctor.lint.engine.guards import guards
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import Function, text
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP102"
NAME = "double-init"
CONFIDENCE: Confidence = "certain"
WORDS = ("init_process_group(",)
ALSO = ("distributed",)

_INIT = "torch.distributed.init_process_group"
_DEPTH = 4


def check(module: Module) -> Iterator[Hit]:
    """Yield the second way into the group."""
    inits = module.calls_of(_INIT)
    sure = [call for call in inits if _is_unconditional(module, call)]
    if not sure:
        return
    ways: dict[ast.AST, list[tuple[ast.Call, ast.Call]]] = {}
    for init in sure:
        for call in _ways(module, init, _DEPTH):
            ways.setdefault(module.scope(call), []).append((call, init))
    for found in ways.values():
        found.sort(key=lambda way: way[0].lineno)
        for (first, _), (second, init) in pairwise(found):
            if first is second or _ends_between(module, first, second):
                continue
            yield Hit(
                init,
                "the process group is joined twice: the second time raises",
                notes=(
                    f"first by `{text(first, 40)}` (line {first.lineno})",
                    f"then by `{text(second, 40)}` (line {second.lineno})",
                ),
                help="join in one place, or ask `dist.is_initialized()` first",
            )
            return


def _ways(module: Module, call: ast.Call, depth: int) -> Iterator[ast.Call]:
    """The call, and those calls that surely run the function it stands in."""
    yield call
    function = module.function(call)
    if function is None or depth == 0 or not _is_plain(module, function):
        return
    for each in module.callers.get(function, ()):
        if _is_unconditional(module, each):
            yield from _ways(module, each, depth - 1)


def _is_plain(module: Module, function: Function) -> bool:
    """Whether a call of this name runs the function: no generator, no other of the name."""
    same = [each for each in module.functions if each.name == function.name]
    return len(same) == 1 or function.name == "__init__"


def _is_unconditional(module: Module, call: ast.Call) -> bool:
    if any(isinstance(each, ast.Try | ast.ExceptHandler) for each in module.ancestors(call)):
        return False
    tests = [text(guard.test) for guard in guards(module, call)]
    return not module.loops(call) and all("__name__" in test for test in tests)


def _ends_between(module: Module, first: ast.Call, second: ast.Call) -> bool:
    """Whether the group is destroyed, here or in a function that is called, before the second."""
    ends = module.calls_of("torch.distributed.destroy_process_group")
    if not ends:
        return False
    functions = {module.function(end) for end in ends}
    between = [call for call in module.calls if first.lineno <= call.lineno <= second.lineno]
    return any(
        call in ends or any(f and call in module.callers.get(f, ()) for f in functions)
        for call in between
    )
