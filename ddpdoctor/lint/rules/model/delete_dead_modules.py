"""Modules that are registered and never used.

## What it does
Finds submodules with parameters that a class makes in `__init__` and that nothing ever reads
again, in a project that uses DDP.

## Why is this bad?
Their parameters never get a gradient. DDP waits for them, and the second forward raises "Expected
to have finished reduction in the prior iteration"; `find_unused_parameters=True` only hides them.

## Example
```python
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)  # never called

    def forward(self, x):
        return self.body(x)
```

## Use instead
```python
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def forward(self, x):
        return self.body(x)
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import dotted, is_constant, keyword
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP301"
NAME = "unused-parameters"
CONFIDENCE: Confidence = "likely"
WORDS = ("nn.Module",)


_WITH_PARAMETERS = re.compile(
    r"^torch\.nn\.(Linear|Bilinear|Embedding|EmbeddingBag|Conv\w+|LSTM|GRU|RNN|Parameter|"
    r"MultiheadAttention|Transformer\w*|BatchNorm\w*|LayerNorm|GroupNorm|\w+Cell)$"
)
# In the text, before any tree is looked at: the names that may be dead.
_WRITTEN = re.compile(
    r"\bself\.(\w+)(?:: [^=\n]+)? = (?:\w+\.)*(?:Linear|Bilinear|Embedding|Conv|LSTM|GRU|RNN|"
    r"Parameter|MultiheadAttention|Transformer|BatchNorm|LayerNorm|GroupNorm|\w+Cell)\w*\("
)
_READS_ALL = re.compile(r"getattr\(self|_modules|self\.children|__dict__|vars\(self")


def check(module: Module) -> Iterator[Hit]:
    """Yield dead modules of classes that are whole: a forward of their own, no subclass here."""
    if "DistributedDataParallel" not in module.project.words:
        return
    written = _WRITTEN.findall(module.text)
    if not any(module.text.count(f".{name}") == 1 for name in written):
        return
    bases = {name for each in module.classes for base in each.bases if (name := dotted(base))}
    for cls in module.classes:
        own = [module.name_of(base) for base in cls.bases]
        if own != ["torch.nn.Module"] or cls.name in bases:
            continue
        if not any(isinstance(e, ast.FunctionDef) and e.name == "forward" for e in cls.body):
            continue
        for statement, target in _registered(module, cls):
            if _is_read(module, cls, target.attr):
                continue
            if any(_READS_ALL.search(line) for line in _lines(module, cls)):
                continue
            yield Hit(
                statement,
                f"`self.{target.attr}` is registered, never used: its parameters get no gradient",
                notes=("DDP raises at the second forward, or find_unused_parameters hides it",),
                help="delete it, or use it in forward",
            )


def _registered(module: Module, cls: ast.ClassDef) -> Iterator[tuple[ast.stmt, ast.Attribute]]:
    for node in module.within(cls):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        if not isinstance(target, ast.Attribute) or dotted(target.value) != "self":
            continue
        if isinstance(value, ast.Call) and _WITH_PARAMETERS.match(module.names.get(value, "")):
            function = module.function(node)
            frozen = is_constant(keyword(value, "requires_grad"), False)
            if function and function.name == "__init__" and not frozen:
                yield node, target


def _is_read(module: Module, cls: ast.ClassDef, name: str) -> bool:
    """Whether the attribute, or its name in a string, is read anywhere in the project."""
    for node in module.by_kind[ast.Attribute]:
        is_it = isinstance(node, ast.Attribute) and node.attr == name
        if is_it and isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
            return True
    if any(
        isinstance(node, ast.Constant) and node.value == name
        for node in module.by_kind[ast.Constant]
    ):
        return True
    return module.project.is_mentioned(name, module.path)


def _lines(module: Module, cls: ast.ClassDef) -> list[str]:
    return module.lines[cls.lineno - 1 : cls.end_lineno]
