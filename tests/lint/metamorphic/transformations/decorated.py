"""Each function and method gets a decorator that hands every call through."""

from __future__ import annotations

import ast

from tests.lint.metamorphic.program import Program, expression, statements
from tests.lint.metamorphic.scopes import Function, after_imports, fresh

_DECORATOR = """
def {name}(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)
    return call
"""


def transform(program: Program) -> None:
    name = fresh(program, "handed_through")
    for tree in program.files.values():
        members = {
            id(each) for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for each in c.body
        }
        chosen = [each for each in tree.body if isinstance(each, Function)]
        chosen += [
            each
            for each in ast.walk(tree)
            if id(each) in members and isinstance(each, Function) and each.name != "__new__"
        ]
        for function in chosen:
            if isinstance(function, ast.FunctionDef):
                function.decorator_list.append(expression(name))
        if chosen:
            at = after_imports(tree)
            tree.body[at:at] = statements("import functools" + _DECORATOR.format(name=name))
