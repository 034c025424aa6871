"""Methods move up into a base class of their own in another file."""

from __future__ import annotations

import ast

from tests.lint.metamorphic.program import Program, expression, statements
from tests.lint.metamorphic.scopes import BUILTINS, after_imports, bound, fresh, imported, loaded


def transform(program: Program) -> None:
    for name, tree in list(program.files.items()):
        at = after_imports(tree)
        imports = [e for e in tree.body[:at] if isinstance(e, ast.Import | ast.ImportFrom)]
        known = set(imported(ast.Module(list(imports), []))) | BUILTINS - {"super", "__name__"}
        module, made = fresh(program, f"{name.removesuffix('.py')}_bases"), []
        body: list[ast.stmt] = list(imports)
        for each in tree.body[at:]:
            if not isinstance(each, ast.ClassDef) or each.decorator_list or each.keywords:
                continue
            methods = [method for method in each.body if _can_go(method, known)]
            bases = set().union(*map(loaded, each.bases))
            if not methods or len(methods) == len(each.body) or bases - known:
                continue
            base = fresh(program, f"{each.name}Base")
            written = ", ".join(map(ast.unparse, each.bases))
            new = statements(f"class {base}({written}):\n    pass", each)[0]
            assert isinstance(new, ast.ClassDef)
            new.body = methods
            each.body = [method for method in each.body if method not in methods]
            each.bases = [expression(base, each)]
            body.append(new)
            made.append(base)
        if made:
            program.files[f"{module}.py"] = ast.Module(body, [])
            tree.body[at:at] = statements(f"from {module} import {', '.join(made)}")


def _can_go(node: ast.stmt, known: set[str]) -> bool:
    """A plain method that reads nothing of its module but imports, nor `super` or private names."""
    if not isinstance(node, ast.FunctionDef) or node.name == "__init__" or node.decorator_list:
        return False
    private = any(
        isinstance(each, ast.Attribute)
        and each.attr.startswith("__")
        and not each.attr.endswith("__")
        for each in ast.walk(node)
    )
    inner = set().union(*(_bound_inside(each) for each in ast.walk(node)))
    return not private and loaded(node) - inner <= known


def _bound_inside(node: ast.AST) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        return bound(node)
    if isinstance(node, ast.comprehension):
        return {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
    return set()
