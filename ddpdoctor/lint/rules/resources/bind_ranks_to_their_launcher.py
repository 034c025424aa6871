"""Ranks that outlive their launcher.

## What it does
Finds a hand-made launcher: `subprocess.Popen` with RANK in its environment, and nothing that ends
the rank when the launcher is killed.

## Why is this bad?
SIGKILL (of a scheduler, or of the kernel out of memory) runs no handler and no `finally`. The ranks
live on, and hold port, memory and devices that the next job wants.

## Example
```python
for rank in range(4):
    subprocess.Popen(command, env={**os.environ, "RANK": str(rank)})
```

## Use instead
```python
def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

for rank in range(4):
    subprocess.Popen(
        command, env={**os.environ, "RANK": str(rank)}, preexec_fn=die_with_parent
    )
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import argument, dotted, is_constant, keyword
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP605"
NAME = "orphan-ranks"
CONFIDENCE: Confidence = "likely"
WORDS = ("Popen(",)
ALSO = ("RANK",)

_NAMES = ("RANK", "LOCAL_RANK")
_BINDS = ("preexec_fn", "start_new_session", "process_group")
"""Either the rank asks for a signal at its parent's death, or somebody wants to kill its group."""


def check(module: Module) -> Iterator[Hit]:
    """Yield the starts of ranks that nothing binds to their launcher."""
    for call in module.calls_of("subprocess.Popen"):
        environment = argument(call, 10, "env")
        bound = any(keyword(call, name) is not None for name in _BINDS)
        if environment is not None and not bound and _names_a_rank(module, environment):
            yield Hit(
                call,
                "a rank started here lives on when its launcher is killed",
                help="bind it: preexec_fn with prctl(PR_SET_PDEATHSIG, SIGKILL), or start it with "
                "torch.multiprocessing.spawn",
            )


def _names_a_rank(module: Module, environment: ast.expr) -> bool:
    value = module.value(environment)
    if isinstance(value, ast.Dict):
        return any(is_constant(key, name) for key in value.keys if key for name in _NAMES)
    if isinstance(value, ast.Call) and any(keyword(value, name) is not None for name in _NAMES):
        return True
    scope, own = module.scope(environment), dotted(environment)
    return any(
        module.scope(each) is scope
        and isinstance(target := each.targets[0], ast.Subscript)
        and dotted(target.value) == own
        and any(is_constant(target.slice, name) for name in _NAMES)
        for each in module.by_kind[ast.Assign]
        if isinstance(each, ast.Assign)
    )
