"""Literals that library calls are given come from a dictionary at the top."""

from __future__ import annotations

import ast

from tests.lint.metamorphic.program import Program, expression, origin, statements
from tests.lint.metamorphic.scopes import Function, after_imports, fresh, own_nodes

_WORDS = "print add_argument getattr setattr hasattr join get setdefault field"
_LEFT = frozenset(_WORDS.split())


def transform(program: Program) -> None:
    taken(program, lambda table, key: f"{table}[{key!r}]", _dictionary)


def _dictionary(table: str, values: dict[str, object]) -> str:
    return f"{table} = {values!r}"


def taken(program, read, written) -> None:  # type: ignore[no-untyped-def]
    """Move the literals of each file into a table that `written` prints and `read` reads."""
    for tree in program.files.values():
        table, values = fresh(program, "settings"), {}
        for scope in ast.walk(tree):
            if not isinstance(scope, Function):
                continue
            for node in own_nodes(scope):
                if isinstance(node, ast.Call) and _name(node.func) not in _LEFT:
                    for place, value in enumerate(node.args):
                        if _is_literal(value):
                            key = f"value_{len(values)}"
                            values[key] = ast.literal_eval(value)
                            node.args[place] = expression(read(table, key), value)
                    for keyword in node.keywords:
                        if keyword.arg and _is_literal(keyword.value):
                            key = f"{keyword.arg}_{len(values)}"
                            values[key] = ast.literal_eval(keyword.value)
                            keyword.value = expression(read(table, key), keyword.value)
        if values:
            at = after_imports(tree)
            tree.body[at:at] = statements(written(table, values))
            assert all(origin(node) is not None for node in tree.body)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bool | int | float)
