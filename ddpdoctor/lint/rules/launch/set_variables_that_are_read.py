"""Environment variable that nobody reads.

## What it does
Finds variables set in the environment that neither PyTorch nor NCCL reads (any more), and
variables set after the process group has been initialised.

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

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.rank import environment_name
from ddpdoctor.lint.engine.trees import targets
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP109"
NAME = "variable-ignored"
CONFIDENCE: Confidence = "certain"
WORDS = (
    "environ",
    "putenv",
)
ALSO = (
    "NCCL_",
    "GLOO_",
    "MASTER_",
    "_TIMEOUT",
    "TORCHELASTIC",
)


_TOO_LATE = re.compile(r"^(NCCL_|TORCH_NCCL_|GLOO_|MASTER_ADDR$|MASTER_PORT$)")


def check(module: Module) -> Iterator[Hit]:
    """Yield variables that are set in vain."""
    joins = {
        module.scope(call): call.lineno
        for call in module.calls_of("torch.distributed.init_process_group")
    }
    for node, name in _written(module):
        if hit := _unread(node, name):
            yield hit
        elif _TOO_LATE.match(name) and node.lineno > joins.get(module.scope(node), node.lineno):
            yield Hit(
                node,
                f"{name} is set after init_process_group(), which has already read it",
                help="set it before the process group is initialised, best before the launch",
                confidence="likely",
            )


def _unread(node: ast.expr, name: str) -> Hit | None:
    """A word on a variable that nobody reads, or nobody reads any more."""
    # Late: few files set such a variable, and the table's package takes time to import.
    from ddpdoctor.environment.variables import known

    row = known().get(name)
    if row is None or row.status not in ("phantom", "legacy", "removed"):
        return None
    if row.status == "phantom":
        message = f"{name} has no effect: nothing in PyTorch or NCCL reads it"
    elif row.status == "legacy":
        message = f"{name} is an old name, which newer versions do not read"
    else:
        message = f"{name} has no effect any more: newer versions do not read it"
    return Hit(
        node,
        message,
        notes=(row.note,) if row.note else (),
        help=row.instead or "drop it",
        confidence=None if row.status == "phantom" else "likely",
    )


def _written(module: Module) -> Iterator[tuple[ast.expr, str]]:
    """(node, name) of each literal variable that is set."""
    for node in module.by_kind[ast.Assign]:
        for target in targets(node):
            if isinstance(target, ast.Subscript) and (name := environment_name(module, target)):
                yield target, name
    for call in module.calls_of("os.environ.setdefault", "os.putenv"):
        if call.args and isinstance(call.args[0], ast.Constant):
            yield call, str(call.args[0].value)
    for call in module.calls_of("os.environ.update"):
        for key in _keys(call):
            yield call, key


def _keys(call: ast.Call) -> list[str]:
    found = [each.arg for each in call.keywords if each.arg]
    if call.args and isinstance(call.args[0], ast.Dict):
        found += [str(k.value) for k in call.args[0].keys if isinstance(k, ast.Constant)]
    return found
