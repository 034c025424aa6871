"""What is written in the files of a program, where a run does not show who reads a thing."""

from __future__ import annotations

import ast
import re

from ddpdoctor.lint.engine.interpreter.program import Run

_READS_ALL = re.compile(
    r"getattr\(self|_modules|self\.(named_)?children|self\.modules|__dict__|vars\(self"
)


def reads(run: Run, name: str) -> bool:
    """Whether any file of the program reads an attribute of this name, or has it as a string."""
    names: set[str] | None = run.answers.get("reads")
    if names is None:
        names = run.answers["reads"] = set()
        for path in sorted(run.vm.files):
            source = run.source(path)
            for node in source.nodes if source else ():
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    names.add(node.attr)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    names.add(node.value)
    return name in names


_ALL = ("parameters", "named_parameters")
_QUIET = ("grad", "numel", "nelement", "requires_grad", "requires_grad_", "data", "shape", "device")


def computes_from_all(run: Run) -> bool:
    """Whether something may be computed from each parameter of a model, or by a name in a variable.

    So is a penalty on all weights: each has a gradient of it, wherever it is used.
    """
    return any(
        _is_computed_from(node) or _is_by_variable(node)
        for path in sorted(run.vm.files)
        if (source := run.source(path)) is not None
        for node in source.nodes
    )


def _is_computed_from(node: ast.AST) -> bool:
    """A loop over all parameters that does more with one than ask for its gradient or its size."""
    inner: list[ast.stmt] | list[ast.expr]
    if isinstance(node, ast.For):
        (over, target), inner = (node.iter, node.target), node.body
    elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
        (over, target), inner = (node.generators[0].iter, node.generators[0].target), [node.elt]
    else:
        return False
    func = over.func if isinstance(over, ast.Call) else None
    if not isinstance(func, ast.Attribute) or func.attr not in _ALL:
        return False
    names = {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}
    return any(
        (isinstance(each, ast.Attribute) and each.attr not in _QUIET and _is_one(each.value, names))
        or (isinstance(each, ast.Call) and any(_is_one(one, names) for one in each.args))
        or (isinstance(each, ast.BinOp) and any(_is_one(x, names) for x in (each.left, each.right)))
        for part in inner
        for each in ast.walk(part)
    )


def _is_one(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _is_by_variable(node: ast.AST) -> bool:
    """`getattr(part, name)` with a name that is not written there."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "getattr"
        and not isinstance(node.args[1:2] and node.args[1], ast.Constant)
    )


def _may_name(text: object, name: str) -> bool:
    """Whether a string is a name or a part of it, as of `"head" in name`."""
    return isinstance(text, str) and len(text) > 1 and text in name


def reads_where_it_goes(run: Run, name: str) -> bool:
    """Whether a name is read outside of functions, or in one that the program was seen to call."""
    for path in sorted(run.vm.files):
        source = run.source(path)
        for node in source.nodes if source else ():
            if isinstance(node, ast.Constant) and _may_name(node.value, name):
                return True
            if not isinstance(node, ast.Attribute) or node.attr != name:
                continue
            if isinstance(node.ctx, ast.Load):
                function = source.function(node) if source else None
                if function is None or id(function) in run.vm.visited:
                    return True
    return False


def reads_all(run: Run, number: int) -> bool:
    """Whether a class goes through its attributes without naming them."""
    info = run.vm.classes[number]
    lines = info.module.text.lines[info.node.lineno - 1 : info.node.end_lineno]
    return any(_READS_ALL.search(line) for line in lines)
