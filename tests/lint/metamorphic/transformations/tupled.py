"""Every function of the author's that returns one value returns two; its callers unpack them."""

from __future__ import annotations

import ast

from tests.lint.metamorphic.program import Program, mark, origin, statements, stems_from
from tests.lint.metamorphic.scopes import Function, own_nodes


def transform(program: Program) -> None:
    chosen = _returning(program) - _used_otherwise(program)
    for tree in program.files.values():
        for node in tree.body:
            if isinstance(node, Function) and node.name in chosen:
                for inner in own_nodes(node):
                    if isinstance(inner, ast.Return):
                        inner.value = _pair(inner)
        _Callers(chosen).visit(tree)


def _pair(node: ast.Return) -> ast.expr:
    value = node.value or stems_from(ast.Constant(None), node)
    pair = ast.Tuple([value, ast.Constant(0)], ast.Load())
    stems_from(pair, node)
    return pair


def _returning(program: Program) -> set[str]:
    """Undecorated functions of a module whose every end is a `return` of a single value."""
    found, seen = set(), set()
    for tree in program.files.values():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.decorator_list:
                returns = [each for each in own_nodes(node) if isinstance(each, ast.Return)]
                yields = any(
                    isinstance(each, ast.Yield | ast.YieldFrom) for each in own_nodes(node)
                )
                plain = all(e.value and not isinstance(e.value, ast.Tuple) for e in returns)
                if returns and plain and not yields and isinstance(node.body[-1], ast.Return):
                    (seen if node.name in found | seen else found).add(node.name)
    return found - seen


def _used_otherwise(program: Program) -> set[str]:
    """Names that are read for more than to call them, or bound twice."""
    called = {id(node.func) for node in program.nodes() if isinstance(node, ast.Call)}
    names = {
        node.id
        for node in program.nodes()
        if isinstance(node, ast.Name)
        and (id(node) not in called or isinstance(node.ctx, ast.Store))
    }
    return names | {node.attr for node in program.nodes() if isinstance(node, ast.Attribute)}


class _Callers(ast.NodeTransformer):
    def __init__(self, chosen: set[str]) -> None:
        self._chosen = chosen
        self._unpacked: set[int] = set()

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if (
            len(node.targets) == 1
            and isinstance(node.targets[0], ast.Name)
            and self._is(node.value)
        ):
            self._unpacked.add(id(node.value))
            target = statements(f"{node.targets[0].id}, spare = 0", node)[0].targets[0]  # type: ignore[attr-defined]
            node.targets = [target]
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not self._is(node) or id(node) in self._unpacked:
            return node
        first = ast.Subscript(node, ast.Constant(0), ast.Load())
        mark(first, origin(node))
        return stems_from(first, node)

    def _is(self, node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Name(id=name)):
                return name in self._chosen
        return False
