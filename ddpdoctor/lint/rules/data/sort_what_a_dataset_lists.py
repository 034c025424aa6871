"""Samples in the order of a folder's listing.

## What it does
Finds `os.listdir`, `glob` and `iterdir` in a Dataset that are not sorted, or sorted by a time.

## Why is this bad?
The order of a listing is the file system's, and differs between machines; times differ between
copies. Ranks then mean different files by sample 7: some are read twice, some never.

## Example
```python
class Files(Dataset):
    def __init__(self, folder):
        self.files = os.listdir(folder)
```

## Use instead
```python
class Files(Dataset):
    def __init__(self, folder):
        self.files = sorted(os.listdir(folder))
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.edits import end_of, start_of
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import dotted, keyword, last_name, targets, text
from ddpdoctor.lint.rule import Confidence, Edit, Fix, Hit

CODE = "DDP213"
NAME = "unsorted-listing"
CONFIDENCE: Confidence = "likely"
WORDS = ("listdir", "glob", "iterdir", "scandir")
ALSO = ("Dataset",)

_LISTINGS = ("os.listdir", "os.scandir", "glob.glob", "glob.iglob")
_METHODS = ("iterdir", "glob", "rglob")
_ORDERLESS = ("len", "set", "frozenset", "any", "all", "sum", "sorted", "Counter", "natsorted")
_TIMES = ("mtime", "ctime", "atime")


def check(module: Module) -> Iterator[Hit]:
    """Yield listings that decide which sample is which."""
    if not any("DistributedSampler" in word for word in module.words):
        return
    for cls in module.classes:
        if not any(last_name(base).endswith("Dataset") for base in cls.bases):
            continue
        for call in module.calls:
            if module.class_of(call) is not cls or not _lists(module, call):
                continue
            order = _sorted_by(module, call)
            if order == "name" or _is_sorted_later(module, call):
                continue
            what = "by a time" if order else "as the file system gives it"
            edits = (
                Edit(*start_of(module, call), "sorted("),
                Edit(*end_of(module, call), ")"),
            )
            yield Hit(
                call,
                f"the samples' order is that of a listing {what}: it differs between machines",
                help="sort by name: `sorted(...)`",
                fix=None if order else Fix(edits),
            )


def _lists(module: Module, call: ast.Call) -> bool:
    if module.names.get(call) in _LISTINGS:
        return True
    return isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS


def _sorted_by(module: Module, call: ast.Call) -> str:
    """The key: "name" where the order is made alike or does not matter, "time", or ""."""
    for each in module.ancestors(call):
        if isinstance(each, ast.stmt):
            return ""
        if isinstance(each, ast.Compare):
            return "name"
        if isinstance(each, ast.Call) and last_name(each.func) in _ORDERLESS:
            key = keyword(each, "key")
            by_time = key is not None and any(word in text(key, 200) for word in _TIMES)
            return "time" if by_time else "name"
    return ""


def _is_sorted_later(module: Module, call: ast.Call) -> bool:
    """Whether the name that gets the listing, or what is built of it, is sorted in the class."""
    statement = module.statement(call)
    names = {dotted(target) for target in targets(statement)}
    cls = module.class_of(call)
    scope = module.scope(statement)
    for each in module.calls:
        if module.class_of(each) is not cls:
            continue
        is_sort = isinstance(each.func, ast.Attribute) and each.func.attr == "sort"
        if is_sort and dotted(each.func.value) and module.scope(each) is scope:  # type: ignore[attr-defined]
            return True
        if last_name(each.func) in _ORDERLESS and each.args and dotted(each.args[0]) in names:
            return True
    return isinstance(statement, ast.Assert)
