"""Checkpoint written in place.

## What it does
Finds `torch.save` straight to the file that the same project resumes from, with no rename.

## Why is this bad?
A job killed in the middle of the write (pre-emption, out of memory, wall clock) leaves half a file
where the old checkpoint was: both are lost.

## Example
```python
torch.save(state, "last.pt")
...
if os.path.exists("last.pt"):
    state = torch.load("last.pt")
```

## Use instead
```python
torch.save(state, "last.pt.tmp")
os.replace("last.pt.tmp", "last.pt")
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.edits import end_of, replace, start_of
from ddpdoctor.lint.engine.module import Module, params
from ddpdoctor.lint.engine.trees import argument, dotted, text
from ddpdoctor.lint.engine.wrappers import is_private
from ddpdoctor.lint.rule import Confidence, Edit, Fix, Hit

CODE = "DDP503"
NAME = "torn-save"
CONFIDENCE: Confidence = "likely"
WORDS = ("torch.save",)
ALSO = (
    "torch.distributed",
    "DistributedDataParallel",
    "accelerate",
)


_RENAMES = ("os.replace", "os.rename", "shutil.move")


def check(module: Module) -> Iterator[Hit]:
    """Yield saves over the file that a resume will need."""
    if not module.is_distributed or module.calls_of(*_RENAMES) or ".replace(" in module.text:
        return
    loads = module.calls_of("torch.load")
    for call in module.calls_of("torch.save"):
        path = argument(call, 1, "f")
        if path is None or is_private(module, path):
            continue
        if not _is_repeated(module, call):
            continue
        if not any(_resumes(module, call, path, load) for load in loads):
            continue
        yield Hit(
            call,
            f"killed while writing, this save destroys the only copy of `{text(path, 30)}`",
            help="write to a temporary file beside it, then os.replace() it",
            fix=_fix(module, call, path),
        )


def _is_repeated(module: Module, call: ast.Call, depth: int = 3) -> bool:
    """Whether a loop overwrites the file again and again, as far as this file shows."""
    if module.loops(call):
        return True
    function = module.function(call)
    if function is None or depth == 0:
        return False
    callers = module.callers.get(function)
    if not callers:
        return True  # called from elsewhere
    return any(_is_repeated(module, each, depth - 1) for each in callers)


def _resumes(module: Module, save: ast.Call, path: ast.expr, load: ast.Call) -> bool:
    """Whether a later run of the program loads, by this call, what the other has saved."""
    loaded = argument(load, 0, "f")
    if loaded is None:
        return False
    same = text(module.value(path) or path, 200) == text(module.value(loaded) or loaded, 200)
    if not same:
        return False
    if module.scope(save) is module.scope(load):
        return load.lineno < save.lineno
    names = {dotted(each).partition(".")[0] for each in ast.walk(path)} - {""}
    return not any(_is_own(module, node, name) for node in (save, load) for name in names)


def _is_own(module: Module, node: ast.AST, name: str) -> bool:
    """Whether a name belongs to this function: another function's `path` is another path.

    Settings are the same for all, whoever hands them over.
    """
    function = module.function(node)
    if function is None or name in ("self", "args", "cfg", "config", "opt", "opts", "hparams"):
        return False
    return name in params(function) or module.binds(function, name)


def _fix(module: Module, call: ast.Call, path: ast.expr) -> Fix | None:
    """Write beside, then rename; not safe, since it does not fsync."""
    statement = module.statement(call)
    simple = isinstance(path, ast.Name | ast.Attribute) or is_constant_text(path)
    if not simple or not isinstance(module.parents[call], ast.Expr) or "os" not in module.imports:
        return None
    shown = ast.unparse(path)
    place = f'f"{{{shown}}}.tmp"' if not is_constant_text(path) else repr(f"{path.value}.tmp")  # type: ignore[attr-defined]
    line = module.lines[statement.lineno - 1]
    indent = line[: len(line) - len(line.lstrip())]
    rest = module.lines[(statement.end_lineno or 1) - 1][end_of(module, statement)[1][1] :]
    if line[: start_of(module, statement)[0][1]].strip() or rest.strip():
        return None
    after = Edit(*end_of(module, statement), f"\n{indent}os.replace({place}, {shown})")
    return Fix((replace(module, path, place), after), safe=False)


def is_constant_text(node: ast.expr) -> bool:
    """Whether a node is a plain string."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
