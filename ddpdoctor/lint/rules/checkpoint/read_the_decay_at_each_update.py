"""EMA decay frozen in a closure.

## What it does
Finds an averaging function that captures `decay` when it is made, in a file that sets `.decay`
later.

## Why is this bad?
The later value changes an attribute that nothing reads: the printed number moves, the average does
not.

## Example
```python
class Ema:
    def __init__(self, model, decay):
        self.decay = decay
        self.update = lambda old, new: decay * old + (1 - decay) * new

ema.decay = 0.9999
```

## Use instead
```python
class Ema:
    def update(self, old, new):
        return self.decay * old + (1 - self.decay) * new
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.values import Place
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP507", name="frozen-ema-decay", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield closures over a decay that somebody believes to change."""
    source = run.source(run.path)
    if source is None or not run.is_entry:
        return
    for owner in source.nodes:
        if not isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for name, attribute in _kept(owner):
            closure = _closure_that_mixes(owner, name)
            changed = next(_changes(run, attribute), None) if closure is not None else None
            if closure is not None and changed is not None:
                yield Hit(
                    closure,
                    f"the decay is captured here once: a later `.{attribute}` changes nothing",
                    notes=(Related.at(changed, "it is set"),),
                    help=f"read `self.{attribute}` at each update",
                    path=run.path,
                )


def _kept(owner: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, str]]:
    """(parameter, attribute) of `self.decay = decay`."""
    given = {each.arg for each in (*owner.args.args, *owner.args.kwonlyargs)}
    for node in owner.body:
        match node:
            case ast.Assign(targets=[ast.Attribute(attr=attribute)], value=ast.Name(id=name)):
                if name in given:
                    yield name, attribute


def _closure_that_mixes(owner: ast.AST, name: str) -> ast.AST | None:
    """A function in the function that weighs by its parameter: `d * a + (1 - d) * b`."""
    for node in ast.walk(owner):
        if isinstance(node, ast.FunctionDef | ast.Lambda) and node is not owner:
            own = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
            if name not in own and any(_mixes(each, name) for each in ast.walk(node)):
                return node
    return None


def _mixes(node: ast.AST, name: str) -> bool:
    """Whether an expression weighs something by the parameter."""
    match node:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return any(isinstance(each, ast.Name) and each.id == name for each in (left, right))
    return False


def _changes(run: Run, attribute: str) -> Iterator[Place]:
    """Where an attribute of this name is set, but in the initialisers of classes."""
    loader = run.vm.program.loader
    for path in dict.fromkeys((run.path, *loader.files)):
        text = loader.text(path)
        if text is None or f".{attribute} =" not in text.source.text:
            continue
        first = {
            id(each)
            for function in text.nodes
            if isinstance(function, ast.FunctionDef) and function.name == "__init__"
            for each in ast.walk(function)
        }
        for node in text.nodes:
            if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
                continue
            if node.attr == attribute and id(node) not in first:
                yield Place(path, node.lineno)
