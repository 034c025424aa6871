"""Another sampler seed on every rank.

## What it does
Finds `DistributedSampler(seed=...)` with a seed that contains the rank.

## Why is this bad?
Each rank shuffles in its own way and then takes every n-th sample: the shards overlap, and about a
third of the data is never seen at 4 ranks.

## Example
```python
DistributedSampler(data, seed=seed + rank)
```

## Use instead
```python
DistributedSampler(data, seed=seed)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.queries.sharding import SAMPLER, made
from ddpdoctor.lint.engine.queries.telling import told_by
from ddpdoctor.lint.engine.trees import argument
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP204", name="sampler-seed-per-rank", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield samplers whose seed depends on the rank."""
    for event in made(run, SAMPLER).values():
        seed = event.values.get("seed")
        if seed is None or not seed.agree.divergent:
            continue
        written = argument(event.node, 4, "seed") if isinstance(event.node, ast.Call) else None
        yield Hit(
            written or event.node,
            "the sampler's seed differs between ranks: the shards overlap and samples are lost",
            notes=told_by(seed.why),
            help="one seed for all ranks; a per-rank generator is for noise alone",
            confidence=None if seed.agree.sure else "likely",
            path=event.path,
        )
