"""Helper functions, classes and constants move to another file of the project."""

from __future__ import annotations

import ast

from tests.lint.metamorphic.program import Program, statements
from tests.lint.metamorphic.scopes import BUILTINS, after_imports, bound, fresh, imported, loaded

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def transform(program: Program) -> None:
    for name, tree in list(program.files.items()):
        chosen = _movable(tree)
        names = [_name(each) for each in chosen]
        if any(isinstance(each, _DEFINITIONS) for each in chosen):
            module = fresh(program, f"{name.removesuffix('.py')}_parts")
            at = after_imports(tree)
            imports = [e for e in tree.body[:at] if isinstance(e, ast.Import | ast.ImportFrom)]
            program.files[f"{module}.py"] = ast.Module([*imports, *chosen], [])
            rest = [each for each in tree.body if each not in chosen]
            source = f"from {module} import {', '.join(names)}"
            tree.body = [*rest[:at], *statements(source), *rest[at:]]


def _movable(tree: ast.Module) -> list[ast.stmt]:
    """What needs nothing but imports and other movable things; the last definition stays."""
    known = {k: n for n in tree.body[: after_imports(tree)] for k in imported(n)}
    definitions = [each for each in tree.body if isinstance(each, _DEFINITIONS)]
    moved = [each for each in tree.body if _is_constant(each, tree) or each in definitions[:-1]]
    while True:
        allowed = BUILTINS - {"__name__", "__file__", "__doc__"} | set(known)
        allowed |= {_name(each) for each in moved}
        kept = [
            each for each in moved if _needs(each) <= allowed and "__file__" not in loaded(each)
        ]
        if len(kept) == len(moved):
            return kept
        moved = kept


def _name(node: ast.stmt) -> str:
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0])
    return node.name  # type: ignore[attr-defined, no-any-return]


def _is_constant(node: ast.stmt, tree: ast.Module) -> bool:
    """`NAME = literal` at the top that nothing binds again."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
        return False
    name = node.targets[0].id
    again = sum(
        name in (each.names if isinstance(each, ast.Global) else [getattr(each, "id", "")])
        for each in ast.walk(tree)
        if isinstance(each, ast.Global) or isinstance(getattr(each, "ctx", None), ast.Store)
    )
    return again == 1 and isinstance(node.value, ast.Constant)


def _needs(node: ast.AST) -> set[str]:
    """Names of the module that a definition reads, its own and its functions' locals apart."""
    found = set()
    for each in ast.iter_child_nodes(node):
        found |= _needs(each)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        found.add(node.id)
    if isinstance(node, ast.Global):
        found.add("")  # a variable of its module: it stays there
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        found -= bound(node)
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        for generator in node.generators:
            found -= {e.id for e in ast.walk(generator.target) if isinstance(e, ast.Name)}
    return found - ({node.name} if isinstance(node, _DEFINITIONS) else set())
