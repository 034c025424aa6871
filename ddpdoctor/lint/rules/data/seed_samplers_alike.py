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

from collections.abc import Iterator

from ddpdoctor.lint.engine.flow import is_made_of_rank
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import argument
from ddpdoctor.lint.engine.vocabulary import SAMPLER
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP204"
NAME = "sampler-seed-per-rank"
CONFIDENCE: Confidence = "certain"
WORDS = ("DistributedSampler",)


def check(module: Module) -> Iterator[Hit]:
    """Yield samplers whose seed depends on the rank."""
    for call in module.calls_of(*SAMPLER):
        seed = argument(call, 4, "seed")
        if seed is None:
            continue
        if is_made_of_rank(module, seed):
            yield Hit(
                seed,
                "the sampler's seed differs between ranks: the shards overlap and samples are lost",
                help="one seed for all ranks; a per-rank generator is for noise alone",
            )
