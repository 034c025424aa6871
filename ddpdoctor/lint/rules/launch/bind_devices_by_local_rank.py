"""Global rank as device index.

## What it does
Finds the global rank used as a device index (`set_device`, `device_ids`, `cuda:{}`), and
`CUDA_VISIBLE_DEVICES` deleted.

## Why is this bad?
On the second node rank 8 asks for device 8 of 8: "invalid device ordinal". Deleting
`CUDA_VISIBLE_DEVICES` takes away what the scheduler had given this process.

## Example
```python
torch.cuda.set_device(dist.get_rank())
```

## Use instead
```python
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.rank import environment_name, is_global_rank
from ddpdoctor.lint.engine.trees import keyword
from ddpdoctor.lint.engine.vocabulary import DDP
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP106"
NAME = "devices-not-bound"
CONFIDENCE: Confidence = "likely"
WORDS = (
    "get_rank(",
    '"RANK"',
    "'RANK'",
    "PROCID",
    "_WORLD_RANK",
    "PMI_RANK",
    "CUDA_VISIBLE_DEVICES",
)
ALSO = (
    "torch.distributed",
    "environ",
    "getenv",
)


_SETTERS = ("torch.cuda.set_device", "torch.cuda.device")
_DELETED = "CUDA_VISIBLE_DEVICES"


def check(module: Module) -> Iterator[Hit]:
    """Yield device indices that are right on the first node only."""
    for call in module.calls:
        if (index := _index(module, call)) is None:
            continue
        if any(is_global_rank(module, each) for each in _parts(index)):
            yield Hit(
                index,
                "the global rank is used as a device index: wrong on every node but the first",
                help='use the local rank: int(os.environ["LOCAL_RANK"])',
            )
    yield from _deletions(module)


def _index(module: Module, call: ast.Call) -> ast.expr | None:
    """What says which device, in a call that binds one."""
    name = module.names.get(call, "")
    if name in _SETTERS and call.args:
        return call.args[0]
    if name == "torch.device" and call.args:
        return call.args[-1]
    if name in DDP:
        return keyword(call, "device_ids")
    moves = isinstance(call.func, ast.Attribute) and call.func.attr in ("cuda", "to")
    return call.args[0] if moves and call.args else None


def _parts(index: ast.expr) -> Iterator[ast.expr]:
    """The index itself, of a list or an f-string its parts; nothing that is reduced by modulo."""
    match index:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            yield from elements
        case ast.JoinedStr(values=values):
            yield from (each.value for each in values if isinstance(each, ast.FormattedValue))
        case ast.BinOp(op=ast.Add(), right=right):
            yield from _parts(right)
        case ast.Call(func=ast.Name(id="str" | "int"), args=[only]):
            yield from _parts(only)
            yield index
        case _:
            yield index


def _deletions(module: Module) -> Iterator[Hit]:
    if not module.is_distributed:
        return
    found: list[ast.AST] = [
        target
        for node in module.by_kind[ast.Delete]
        if isinstance(node, ast.Delete)
        for target in node.targets
        if environment_name(module, target) == _DELETED
    ]
    found += [
        call
        for call in module.calls_of("os.environ.pop")
        if environment_name(module, call) == _DELETED and isinstance(module.parents[call], ast.Expr)
    ]
    for node in found:
        yield Hit(
            node,
            "CUDA_VISIBLE_DEVICES is deleted: the process sees devices that are not its own",
            help="leave the variable alone; bind the device with set_device(LOCAL_RANK)",
        )
