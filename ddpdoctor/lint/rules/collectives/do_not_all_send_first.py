"""Every rank sends first.

## What it does
Finds `dist.send` followed by `dist.recv` (or the reverse) with a peer that is computed, in code
that every rank runs.

## Why is this bad?
`send` may return only when the peer receives. Where all ranks send first, nobody receives; where
all receive first, nobody sends.

## Example
```python
dist.send(mine, dst=peer)
dist.recv(theirs, src=peer)
```

## Use instead
```python
ops = [dist.P2POp(dist.isend, mine, peer), dist.P2POp(dist.irecv, theirs, peer)]
for work in dist.batch_isend_irecv(ops):
    work.wait()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from ddpdoctor.lint.engine.flow import is_run_by_all
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import argument
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP417"
NAME = "send-recv-deadlock"
CONFIDENCE: Confidence = "likely"
WORDS = (".send(",)
ALSO = (".recv(",)

_SEND, _RECV = "torch.distributed.send", "torch.distributed.recv"


def check(module: Module) -> Iterator[Hit]:
    """Yield the first of two blocking calls that all ranks make in one order."""
    calls = sorted(module.calls_of(_SEND, _RECV), key=lambda call: call.lineno)
    for first, second in pairwise(calls):
        if module.names[first] == module.names[second] or not _in_one_block(module, first, second):
            continue
        peers = [
            argument(call, 1, "dst" if module.names[call] == _SEND else "src")
            for call in (first, second)
        ]
        if any(peer is None or isinstance(peer, ast.Constant) for peer in peers):
            continue
        if is_run_by_all(module, first):
            word = "sends" if module.names[first] == _SEND else "receives"
            yield Hit(
                first,
                f"every rank {word} first: each waits for a peer that does the same",
                notes=(f"the other half is at line {second.lineno}",),
                help="even ranks send first and odd ones receive, or dist.batch_isend_irecv",
            )


def _in_one_block(module: Module, one: ast.Call, other: ast.Call) -> bool:
    return module.parents[module.statement(one)] is module.parents[module.statement(other)]
