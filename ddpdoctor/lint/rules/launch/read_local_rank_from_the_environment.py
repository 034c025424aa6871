"""--local_rank expected as an argument.

## What it does
Finds a script that takes `--local_rank` as an argument, in a project that never reads LOCAL_RANK.

## Why is this bad?
torchrun does not pass the argument: it sets LOCAL_RANK. The script sees its default, 0 or -1, on
every rank, and all of them take one device or train alone.

## Example
```python
parser.add_argument("--local_rank", type=int, default=0)
```

## Use instead
```python
local_rank = int(os.environ["LOCAL_RANK"])
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import is_constant
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP112"
NAME = "local-rank-argument"
CONFIDENCE: Confidence = "likely"
WORDS = (
    "local_rank",
    "local-rank",
)
ALSO = ("add_argument",)


def check(module: Module) -> Iterator[Hit]:
    """Yield arguments that torchrun no longer fills."""
    if module.words & {"LOCAL_RANK", "deepspeed", "lightning", "accelerate"}:
        return
    if not module.is_distributed:
        return
    for call in module.method_calls("add_argument"):
        if call.args and is_constant(call.args[0], "--local_rank", "--local-rank"):
            yield Hit(
                call,
                "torchrun does not pass --local_rank: it sets LOCAL_RANK in the environment",
                help='read int(os.environ["LOCAL_RANK"])',
            )
