"""Reentrant checkpointing of a module that is used more than once.

## What it does
Finds `checkpoint(self.block, x, use_reentrant=True)` in a loop that does not run over the blocks,
where the model is wrapped in DDP without a static graph.

## Why is this bad?
Each reentrant checkpoint runs a backward of its own and marks its parameters ready: "Expected to
mark a variable ready only once".

## Example
```python
for _ in range(2):
    x = checkpoint(self.shared, x, use_reentrant=True)
```

## Use instead
```python
for _ in range(2):
    x = checkpoint(self.shared, x, use_reentrant=False)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.edits import replace
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import dotted, keyword, targets
from ddpdoctor.lint.engine.wrappers import keyword_is
from ddpdoctor.lint.rule import Confidence, Fix, Hit

CODE = "DDP311"
NAME = "marked-ready-twice"
CONFIDENCE: Confidence = "certain"
WORDS = ("use_reentrant",)
ALSO = ("DistributedDataParallel",)


def check(module: Module) -> Iterator[Hit]:
    """Yield shared modules whose parameters become ready twice."""
    if "_set_static_graph" in module.text:
        return
    if not module.wraps or any(keyword_is(call, "static_graph", True) for call in module.wraps):
        return
    for call in module.calls_of("torch.utils.checkpoint.checkpoint"):
        value = keyword(call, "use_reentrant")
        loops = module.loops(call)
        if not loops or not call.args or not keyword_is(call, "use_reentrant", True):
            continue
        name = dotted(call.args[0])
        own = {dotted(target) for loop in loops for target in targets(loop)}
        if name.startswith("self.") and name not in own and isinstance(value, ast.Constant):
            yield Hit(
                call,
                f"`{name}` is checkpointed once per pass: DDP marks its parameters ready twice",
                help="use_reentrant=False",
                fix=Fix((replace(module, value, "False"),)),
            )
