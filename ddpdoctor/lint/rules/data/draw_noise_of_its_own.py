"""The same noise on every rank.

## What it does
Finds scripts that seed all ranks alike, never by the rank, and train a model with dropout.

## Why is this bad?
Each rank drops the same units in the same step. The noise of N ranks is that of one: the gradient
is averaged over the samples, not over the noise.

## Example
```python
torch.manual_seed(seed)
model = DDP(build_model())
```

## Use instead
```python
torch.manual_seed(seed)
model = DDP(build_model())
torch.manual_seed(seed + 1 + dist.get_rank())
```
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.flow import is_made_of_rank, is_run_by_all
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP205"
NAME = "same-noise-everywhere"
CONFIDENCE: Confidence = "likely"
WORDS = ("manual_seed", "seed_everything", "set_seed")
ALSO = ("Dropout",)

_SEEDS = ("torch.manual_seed", "torch.random.manual_seed")
_MAKES_OWN = re.compile(r"fork_rng|set_rng_state|device_specific|seed\w*\([^)\n]*rank", re.I)


def check(module: Module) -> Iterator[Hit]:
    """Yield the seed that all ranks share from the beginning to the end."""
    if not module.wraps or not module.stands_alone or _MAKES_OWN.search(module.text):
        return
    seeds = module.calls_of(*_SEEDS)
    if not seeds or any(is_made_of_rank(module, arg) for call in seeds for arg in call.args):
        return
    if is_run_by_all(module, seeds[0]):
        yield Hit(
            seeds[0],
            "every rank draws the same dropout: nothing seeds it by the rank",
            help="after the model is built: torch.manual_seed(seed + 1 + rank)",
        )
