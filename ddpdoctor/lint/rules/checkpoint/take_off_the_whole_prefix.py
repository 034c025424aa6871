"""Letters taken off the keys of a state, where the wrapper's prefix was meant.

## What it does
Finds `key.lstrip("module.")`; and `lstrip` of any other part of a name with its dot, in programs
that load a state.

## Why is this bad?
`lstrip` takes off any of these letters, as long as they come: `module.encoder.weight` becomes
`ncoder.weight`, `module.model.bias` becomes `bias`. With `strict=False` what is named so is not
loaded, silently; what has another first letter is, and so the loss looks almost right.

## Example
```python
state = {key.lstrip("module."): value for key, value in state.items()}
```

## Use instead
```python
state = {key.removeprefix("module."): value for key, value in state.items()}
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.edits import replace
from ddpdoctor.lint.engine.interpreter.loading import Text
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.rule import About, Fix, Hit

ABOUT = About(code="DDP508", name="module-prefix", confidence="likely")

_WRAPPERS = re.compile(r"((module|_orig_mod)\.)+")
_NAMES = re.compile(r"([^\W\d]\w+\.)+")
_LOADS = ("load_state_dict", "torch.load")


def check(run: Run) -> Iterator[Hit]:
    """Yield where the letters of the prefix are stripped from names."""
    texts = {path: text for path in sorted(run.vm.files) if (text := run.source(path)) is not None}
    found = {}
    for path, text in texts.items():
        for node in text.nodes if "lstrip(" in text.source.text else ():
            prefix = _stripped(text, node)
            if prefix is not None and _WRAPPERS.fullmatch(prefix):
                found[node] = (path, prefix)
    if any(each in text.source.text for text in texts.values() for each in _LOADS):
        for made in run.vm.made.values():
            prefix = made.of[1].constant if made.by == "lstrip" and len(made.of) == 2 else None
            if isinstance(prefix, str) and _NAMES.fullmatch(prefix):
                found[made.node] = (made.path, prefix)
    for node, (path, prefix) in found.items():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name = f"{ast.unparse(node.func.value)}.removeprefix"
        yield Hit(
            node,
            f"lstrip({prefix!r}) takes off letters, not the prefix: names that begin with one of "
            "them are not found again",
            help=f"{name}({prefix!r})",
            fix=Fix((replace(texts[path].source, node.func, name),)),
            path=path,
        )


def _stripped(text: Text, node: ast.AST) -> str | None:
    """What is given to `lstrip`, as it stands there or under a name of the module's."""
    if not isinstance(node, ast.Call) or len(node.args) != 1:
        return None
    given = node.args[0]
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "lstrip":
        return None
    if isinstance(given, ast.Name):
        bound = text.bindings.get(given.id, [])
        made = bound[0] if len(bound) == 1 else None
        if not isinstance(made, ast.Assign):
            return None
        given = made.value
    value = given.value if isinstance(given, ast.Constant) else None
    return value if isinstance(value, str) else None
