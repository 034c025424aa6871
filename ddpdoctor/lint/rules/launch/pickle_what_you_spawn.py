"""Arguments for spawned ranks that cannot be pickled.

## What it does
Finds lambdas, open files, locks and functions defined in functions among the arguments of
`mp.spawn`, also inside an object that is built in the same function.

## Why is this bad?
Spawned processes get their arguments by pickle: "Can't pickle <function <lambda>>" before any rank
runs.

## Example
```python
mp.spawn(worker, args=(lambda step: 0.5**step,), nprocs=4)
```

## Use instead
```python
def halve(step):
    return 0.5**step

mp.spawn(worker, args=(halve,), nprocs=4)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import argument, dotted
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP117"
NAME = "unpicklable-spawn-arguments"
CONFIDENCE: Confidence = "certain"
WORDS = ("spawn",)
ALSO = ("multiprocessing",)

_SPAWN = ("torch.multiprocessing.spawn", "torch.multiprocessing.spawn.spawn")
_UNPICKLABLE = ("open", "threading.Lock", "threading.RLock", "socket.socket")
_DEPTH = 3


def check(module: Module) -> Iterator[Hit]:
    """Yield spawns that end in a PicklingError."""
    for call in module.calls_of(*_SPAWN):
        given = [each for each in (*call.args[:1], argument(call, 1, "args")) if each is not None]
        for each in given:
            if what := _unpicklable(module, each, _DEPTH):
                yield Hit(
                    call,
                    f"{what} cannot be pickled for the spawned ranks",
                    help="hand over functions and classes of the module's top level",
                )
                break


def _unpicklable(module: Module, node: ast.expr, depth: int) -> str:
    match node:
        case ast.Lambda():
            return f"the lambda at line {node.lineno}"
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return next((w for e in elements if (w := _unpicklable(module, e, depth))), "")
        case ast.Call(func=func, args=given, keywords=keywords):
            name = module.name_of(func)
            if name in _UNPICKLABLE:
                return f"what {name}() returns (line {node.lineno})"
            if depth == 0 or not name.rpartition(".")[2][:1].isupper():
                return ""
            kept = [*given, *(each.value for each in keywords)]
            return next((w for e in kept if (w := _unpicklable(module, e, depth - 1))), "")
        case ast.Name(id=name):
            nested = any(
                function.name == name and module.function(function) is module.function(node)
                for function in module.functions
                if module.function(function) is not None
            )
            if nested:
                return f"the function `{name}`, which is defined in a function,"
            value = module.value(node)
            if depth and value is not None and value is not node and dotted(value) != name:
                return _unpicklable(module, value, depth - 1)
    return ""
