"""The arms of each `if` change places: `if c: A else: B` becomes `if not c: B else: A`."""

from __future__ import annotations

import ast

from tests.lint.metamorphic.program import Program, mark, origin, stems_from
from tests.lint.metamorphic.scopes import is_main_guard


def transform(program: Program) -> None:
    for node in list(program.nodes()):
        if isinstance(node, ast.If) and not is_main_guard(node):
            node.test = _negated(node.test)
            other = node.orelse or [stems_from(ast.Pass(), node.test)]
            node.body, node.orelse = other, node.body
        elif isinstance(node, ast.IfExp):
            node.test = _negated(node.test)
            node.body, node.orelse = node.orelse, node.body


def _negated(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    negation = ast.UnaryOp(ast.Not(), test)
    mark(negation, origin(test))
    return negation
