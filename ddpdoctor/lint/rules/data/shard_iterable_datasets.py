"""An iterable dataset that every rank, or every worker, reads in full.

## What it does
Finds loaders over an IterableDataset of the same file that never asks for the rank, or that is
given the rank but loaded by several workers and never asks which worker it runs in.

## Why is this bad?
No sampler can shard a stream. Every rank trains on all of it: N times the work, no speed-up; with
workers every sample comes once per worker.

## Example
```python
class Stream(IterableDataset):
    def __iter__(self):
        yield from self.documents
```

## Use instead
```python
class Stream(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        number, count = (worker.id, worker.num_workers) if worker else (0, 1)
        shard = self.rank * count + number
        yield from itertools.islice(self.documents, shard, None, self.world_size * count)
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.flow import origins
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import argument, has_star, last_name, text
from ddpdoctor.lint.engine.vocabulary import LOADER
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP215"
NAME = "iterable-not-sharded"
CONFIDENCE: Confidence = "likely"
WORDS = ("IterableDataset",)
ALSO = ("DistributedDataParallel",)

_RANK = re.compile(r"rank|shard|replica|world|partition|split|islice|node|file|path|url|part", re.I)
_WORKER = re.compile(r"worker", re.I)


def check(module: Module) -> Iterator[Hit]:
    """Yield loaders over streams that are not dealt out."""
    if not module.wraps:
        return
    streams = {
        cls.name: cls
        for cls in module.classes
        if any(last_name(base) == "IterableDataset" for base in cls.bases)
    }
    for call in module.calls_of(*LOADER):
        if not call.args or has_star(call):
            continue
        made = _made(module, call.args[0], streams)
        if made is None:
            continue
        cls = streams[last_name(made.func)]
        body = "\n".join(module.lines[cls.lineno - 1 : cls.end_lineno])
        given = " ".join(text(each, 500) for each in origins(module, made))
        if not _RANK.search(body) and not _RANK.search(given) and not _WORKER.search(body):
            yield Hit(
                call,
                f"every rank reads all of `{cls.name}`: the stream does not ask for its rank",
                help="yield only every world_size-th sample, from the rank's own on",
            )
        elif _has_workers(module, call) and not _WORKER.search(body) and "yield" in body:
            yield Hit(
                call,
                f"every worker reads all of `{cls.name}`'s shard: samples come once per worker",
                help="shard by get_worker_info() too",
            )


def _made(module: Module, data: ast.expr, streams: dict[str, ast.ClassDef]) -> ast.Call | None:
    for each in origins(module, data):
        if isinstance(each, ast.Call) and last_name(each.func) in streams:
            return each
    return None


def _has_workers(module: Module, call: ast.Call) -> bool:
    workers = module.value(argument(call, 5, "num_workers"))
    return (
        isinstance(workers, ast.Constant) and isinstance(workers.value, int) and workers.value > 1
    )
