"""A function's variables become attributes of one object: `rank = f()` is `state.rank = f()`."""

from __future__ import annotations

import ast

from tests.lint.metamorphic.program import Program, origin, statements, stems_from
from tests.lint.metamorphic.scopes import Function, after_imports, bound, fresh, imported, own_nodes

_CLASS = """
class {name}:
    pass
"""


def transform(program: Program) -> None:
    kind, name = fresh(program, "State"), fresh(program, "state")
    for tree in program.files.values():
        found = False
        tops = [each for each in tree.body if isinstance(each, Function)]
        members = [e for c in tree.body if isinstance(c, ast.ClassDef) for e in c.body]
        for function in [*tops, *(each for each in members if isinstance(each, Function))]:
            chosen = _locals(function)
            if chosen:
                found = True
                fields = _Fields(chosen, name)
                function.body = [fields.visit(each) for each in function.body]
                at = _after_docstring(function)
                function.body[at:at] = statements(f"{name} = {kind}()", function.body[at])
        if found:
            at = after_imports(tree)
            tree.body[at:at] = statements(_CLASS.format(name=kind))


def _after_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0]
    return int(isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant))


def _locals(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """What the function assigns and nothing inside it binds in another sense."""
    assigned = {
        node.id
        for node in own_nodes(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del)
    }
    kept = {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)}
    for node in ast.walk(function):
        match node:
            case ast.Global() | ast.Nonlocal():
                kept |= set(node.names)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() if node is not function:
                kept |= bound(node)
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                kept.add(node.name)
            case ast.comprehension():
                kept |= {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
            case ast.ExceptHandler(name=str(caught)):
                kept.add(caught)
            case ast.NamedExpr(target=ast.Name(id=walrus)):
                kept.add(walrus)
            case ast.AnnAssign(target=ast.Name(id=annotated)):
                kept.add(annotated)
    return assigned - kept - set(imported(function))


class _Fields(ast.NodeTransformer):
    def __init__(self, chosen: set[str], name: str) -> None:
        self._chosen, self._name = chosen, name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self._chosen:
            return node
        field = ast.Attribute(ast.Name(self._name, ast.Load()), node.id, node.ctx)
        field.origin = origin(node)  # type: ignore[attr-defined]
        return stems_from(field, node)
