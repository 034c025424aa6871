"""A store that every rank wants to host.

## What it does
Finds `TCPStore(..., is_master=True)` that every rank builds and then joins the process group with.

## Why is this bad?
One process can listen on the port. The others get EADDRINUSE; on several machines each rank joins
a group of its own.

## Example
```python
store = dist.TCPStore(host, port, world_size, is_master=True)
dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
```

## Use instead
```python
store = dist.TCPStore(host, port, world_size, is_master=rank == 0)
dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.flow import is_kept_for_some
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import argument, dotted, is_constant, keyword, targets
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP104"
NAME = "port-in-use"
CONFIDENCE: Confidence = "certain"
WORDS = ("TCPStore",)
ALSO = ("distributed",)


def check(module: Module) -> Iterator[Hit]:
    """Yield stores of which every rank is the master."""
    joined = {
        (module.scope(call), dotted(store))
        for call in module.calls_of("torch.distributed.init_process_group")
        if (store := keyword(call, "store")) is not None
        and not isinstance(keyword(call, "rank"), ast.Constant)
    }
    for call in module.calls_of("torch.distributed.TCPStore"):
        scope = module.scope(call)
        names = {(scope, dotted(target)) for target in targets(module.statement(call))}
        if not names & joined or is_kept_for_some(module, call):
            continue
        if is_constant(argument(call, 3, "is_master"), True):
            yield Hit(
                call,
                "every rank hosts the store: only the first can listen on the port",
                help="is_master=rank == 0",
            )
