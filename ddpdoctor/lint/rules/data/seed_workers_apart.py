"""The same noise in every data-loading worker.

## What it does
Finds datasets that draw from a generator which they made themselves, by a fixed seed, and never
ask which worker they run in; and `worker_init_fn`s that seed all ranks alike.

## Why is this bad?
Workers are copies of the dataset: each has the same generator in the same state. Every worker, of
every rank, draws the same crops and the same noise.

## Example
```python
class Noisy(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __getitem__(self, i):
        return self.x[i] + self.rng.normal()
```

## Use instead
```python
class Noisy(Dataset):
    def __getitem__(self, i):
        return self.x[i] + torch.randn(())  # the loader seeds each worker's own
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.flow import origins
from ddpdoctor.lint.engine.module import Module, params
from ddpdoctor.lint.engine.trees import dotted, keyword, last_name, text
from ddpdoctor.lint.engine.vocabulary import LOADER
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP210"
NAME = "worker-seed-clones"
CONFIDENCE: Confidence = "likely"
WORDS = ("Dataset", "worker_init_fn")
ALSO = ("random",)

_GENERATORS = ("numpy.random.default_rng", "numpy.random.RandomState", "random.Random")
_SEEDS = ("numpy.random.seed", "random.seed")
_APART = re.compile(r"rank|initial_seed|base_seed|\.seed\b", re.I)


def check(module: Module) -> Iterator[Hit]:
    """Yield generators that all workers share, and seeds that all ranks share."""
    if not module.is_distributed:
        return
    handled = any(_is_given(module, call) for call in module.calls_of(*LOADER))
    datasets = _datasets(module)
    for cls in () if handled else module.classes:
        if cls.name in datasets:
            yield from _cloned(module, cls)
    for function in _initialisers(module):
        for call in module.calls_of(*_SEEDS):
            given = " ".join(text(each, 200) for arg in call.args for each in origins(module, arg))
            if module.inside(call, function) and not _APART.search(given):
                yield Hit(
                    call,
                    "the workers of every rank are seeded alike: nothing here asks for the rank",
                    help="seed by torch.initial_seed() % 2**32, which differs if the ranks' do",
                )


def _is_given(module: Module, call: ast.Call) -> bool:
    """Whether the loader surely has a worker_init_fn: no parameter that may be None."""
    given = keyword(call, "worker_init_fn")
    function = module.function(call)
    handed_on = isinstance(given, ast.Name) and function and given.id in params(function)
    return given is not None and not handed_on


def _datasets(module: Module) -> set[str]:
    """The classes of this file that are datasets, also by another class of the file."""
    found: set[str] = set()
    for cls in module.classes:
        names = [last_name(b.value if isinstance(b, ast.Subscript) else b) for b in cls.bases]
        if any(name.endswith("Dataset") or name in found for name in names):
            found.add(cls.name)
    return found


def _cloned(module: Module, cls: ast.ClassDef) -> Iterator[Hit]:
    lines = "\n".join(module.lines[cls.lineno - 1 : cls.end_lineno])
    if "get_worker_info" in lines or "worker_id" in lines:
        return
    drawn = {
        dotted(call.func.value)
        for call in module.calls
        if isinstance(call.func, ast.Attribute)
        and module.class_of(call) is cls
        and (function := module.function(call)) is not None
        and function.name in ("__getitem__", "__iter__")
    }
    for call in module.calls_of(*_GENERATORS):
        statement = module.statement(call)
        if module.class_of(call) is not cls or not isinstance(statement, ast.Assign):
            continue
        function = module.function(call)
        names = {dotted(target) for target in statement.targets}
        apart = _APART.search(" ".join(text(arg) for arg in call.args))
        in_init = function is not None and function.name == "__init__"
        once = all(len(module.bindings(call, name)) == 1 for name in names)
        if in_init and once and call.args and names & drawn and not apart:
            yield Hit(
                call,
                "every worker of every rank gets a copy of this generator: the same noise",
                help="draw from torch's generator, which the loader seeds for each worker",
            )


def _initialisers(module: Module) -> Iterator[ast.AST]:
    for call in module.calls_of(*LOADER):
        given = keyword(call, "worker_init_fn")
        if isinstance(given, ast.Lambda):
            yield given
        elif given is not None:
            yield from (each for each in module.functions if each.name == last_name(given))
