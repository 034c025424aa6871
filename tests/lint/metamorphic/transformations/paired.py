"""`x = f()` becomes `x, spare = f(), 0`: a value travels as one element of a tuple."""

from __future__ import annotations

import ast

from tests.lint.metamorphic.program import Program, mark, origin, statements, stems_from
from tests.lint.metamorphic.scopes import Function, own_nodes


def transform(program: Program) -> None:
    scopes = [node for node in program.nodes() if isinstance(node, Function | ast.Module)]
    for scope in scopes:
        for node in list(own_nodes(scope)):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() | ast.Compare()):
                    pair = ast.Tuple([node.value, ast.Constant(0)], ast.Load())
                    mark(pair, origin(node))
                    stems_from(pair, node)
                    target = statements(f"{name}, spare = 0", node)[0].targets[0]  # type: ignore[attr-defined]
                    node.targets, node.value = [target], pair
