"""What can be said of the models that a file defines: which way their forward goes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.flow import origins, stands_for
from ddpdoctor.lint.engine.module import Module, params
from ddpdoctor.lint.engine.trees import dotted, last_name

_DEPTH = 5
_SURE = ("torch.nn.Sequential", "torch.nn.Linear", "torch.nn.Bilinear")


def model_classes(module: Module) -> dict[str, ast.ClassDef]:
    """The classes of this file that are models, by name."""
    return {
        cls.name: cls
        for cls in module.classes
        if any(module.name_of(base) == "torch.nn.Module" for base in cls.bases)
    }


def forward_of(cls: ast.ClassDef) -> ast.FunctionDef | None:
    """The forward of a class, if it has one of its own."""
    found = (each for each in cls.body if isinstance(each, ast.FunctionDef))
    return next((each for each in found if each.name == "forward"), None)


def switches(module: Module, cls: ast.ClassDef) -> ast.AST | None:
    """The place in forward where one of its arguments decides whether a part is used at all."""
    forward = forward_of(cls)
    if forward is None:
        return None
    given = set(params(forward)) - {"self"}
    for node in module.within(forward):
        if not isinstance(node, ast.If | ast.IfExp):
            continue
        asked = {each.id for each in ast.walk(node.test) if isinstance(each, ast.Name)}
        arms = [node.body, node.orelse]
        used = [_parts_used(module, arm) for arm in arms]
        if asked & given and used[0] != used[1]:
            return node
    return None


def _parts_used(module: Module, arm: ast.expr | list[ast.stmt]) -> set[str]:
    nodes = arm if isinstance(arm, list) else [arm]
    return {
        name
        for node in nodes
        for call in module.within(node)
        if isinstance(call, ast.Call) and (name := dotted(call.func)).startswith("self.")
    }


def uses_everything(module: Module, model: ast.expr, depth: int = _DEPTH) -> bool:
    """Whether a forward of this model certainly runs every part of it, as far as is seen here."""
    if depth == 0:
        return False
    if isinstance(model, ast.Name | ast.Attribute):
        values = stands_for(module, model)
        return bool(values) and all(uses_everything(module, each, depth - 1) for each in values)
    if not isinstance(model, ast.Call):
        return False
    name = module.name_of(model.func)
    if isinstance(model.func, ast.Attribute) and model.func.attr in (
        "to",
        "cuda",
        "float",
        "train",
    ):
        return uses_everything(module, model.func.value, depth - 1)
    if name in _SURE:
        return True
    if name in model_classes(module):
        return True
    made = module.called.get(model, [])
    returned = [
        each.value
        for each in module.by_kind[ast.Return]
        if isinstance(each, ast.Return) and made and module.function(each) is made[0]
    ]
    return bool(returned) and all(
        each is not None and uses_everything(module, each, depth - 1) for each in returned
    )


def is_straight(module: Module, cls: ast.ClassDef) -> bool:
    """Whether forward has one way only, and reads each part that the class registers."""
    forward = forward_of(cls)
    if forward is None:
        return False
    ways = (ast.If, ast.IfExp, ast.Try, ast.Match, ast.While, ast.BoolOp, ast.Break, ast.Continue)
    if any(isinstance(node, ways) for node in module.within(forward)):
        return False
    if any(_picks_a_part(node) for node in module.within(forward)):
        return False
    read = {last_name(node) for node in module.within(forward) if isinstance(node, ast.Attribute)}
    return all(name in read for name in _registered(module, cls))


def _picks_a_part(node: ast.AST) -> bool:
    """`self.heads[language](x)`: which part takes part, the data says."""
    return (
        isinstance(node, ast.Subscript)
        and dotted(node.value).startswith("self.")
        and not isinstance(node.slice, ast.Constant | ast.Slice | ast.UnaryOp)
    )


def _registered(module: Module, cls: ast.ClassDef) -> Iterator[str]:
    for node in module.within(cls):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            for target in node.targets:
                name = dotted(target)
                if name.startswith("self."):
                    yield name.removeprefix("self.")


def built_from(module: Module, model: ast.expr, depth: int = _DEPTH) -> Iterator[ast.AST]:
    """The code of this file that a model comes of: expressions, functions and classes."""
    classes = {cls.name: cls for cls in module.classes}
    for each in origins(module, model):
        yield each
        for call in module.within(each) if depth else ():
            if not isinstance(call, ast.Call):
                continue
            if cls := classes.get(last_name(call.func)):
                yield cls
            for function in module.called.get(call, ()):
                if function.name == "__init__":
                    continue
                yield function
                for node in module.within(function):
                    if isinstance(node, ast.Return) and node.value is not None:
                        yield from built_from(module, node.value, depth - 1)
