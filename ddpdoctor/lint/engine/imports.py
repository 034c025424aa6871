"""What the names of a module stand for: its import statements, wherever they are."""

from __future__ import annotations

import ast

from ddpdoctor.lint.engine.trees import dotted


def of_import(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Local name -> dotted name; relative imports keep their leading dots."""
    if isinstance(node, ast.Import):
        return {
            (alias.asname or alias.name.partition(".")[0]): (
                alias.name if alias.asname else alias.name.partition(".")[0]
            )
            for alias in node.names
        }
    base = "." * node.level + (node.module or "")
    join = base if base.endswith(".") or not base else base + "."
    names = [alias for alias in node.names if alias.name != "*"]
    return {alias.asname or alias.name: join + alias.name for alias in names}


def stars(node: ast.ImportFrom) -> str:
    """The module of a `from x import *`, "" for any other import."""
    if any(alias.name == "*" for alias in node.names):
        return "." * node.level + (node.module or "")
    return ""


def resolve(node: ast.AST, imports: dict[str, str]) -> str:
    """The dotted name of an expression, its first part replaced by what was imported for it."""
    name = dotted(node)
    if not name:
        return ""
    head, dot, rest = name.partition(".")
    return imports.get(head, head) + dot + rest
