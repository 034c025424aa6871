"""Library functions are called by another name: `b = dist.barrier`, then `b()`."""

from __future__ import annotations

import ast

from tests.lint.metamorphic.program import Program, statements
from tests.lint.metamorphic.scopes import after_imports, bound, fresh, functions, imported


def transform(program: Program) -> None:
    shadowed = set().union(*(bound(each) for each in functions(program)))
    for tree in program.files.values():
        roots = {
            name
            for name, what in imported(tree).items()
            if what.partition(".")[0] == "torch" and name not in shadowed
        }
        renamer = _Aliases(roots, fresh(program, "alias"))
        for node in tree.body:
            renamer.visit(node)
        lines = [f"{alias} = {what}" for what, alias in renamer.found.items()]
        at = after_imports(tree)
        tree.body[at:at] = statements("\n".join(lines)) if lines else []


class _Aliases(ast.NodeTransformer):
    """Replaces the callee of each call of a library's function."""

    def __init__(self, roots: set[str], stem: str) -> None:
        self._roots, self._stem = roots, stem
        self.found: dict[str, str] = {}

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        what = _dotted(node.func)
        last = what.rpartition(".")[2]
        if what.partition(".")[0] in self._roots and last.islower() and "." in what:
            alias = self.found.setdefault(what, f"{self._stem}_{len(self.found)}")
            node.func = ast.copy_location(ast.Name(alias, ast.Load()), node.func)
            node.func.origin = node.origin  # type: ignore[attr-defined]
        return node


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""
