"""Each class gets one more base class between itself and its own, in another file."""

from __future__ import annotations

import ast

from tests.lint.metamorphic.program import Program, expression, statements
from tests.lint.metamorphic.scopes import after_imports, fresh, imported, loaded


def transform(program: Program) -> None:
    for name, tree in list(program.files.items()):
        known = set(imported(ast.Module(tree.body[: after_imports(tree)], [])))
        chosen = [
            each
            for each in tree.body
            if isinstance(each, ast.ClassDef) and not each.decorator_list and not each.keywords
            if not set().union(*map(loaded, each.bases)) - known - {"object"}
        ]
        if not chosen:
            continue
        module, at = fresh(program, f"{name.removesuffix('.py')}_bases"), after_imports(tree)
        imports = [e for e in tree.body[:at] if isinstance(e, ast.Import | ast.ImportFrom)]
        body: list[ast.stmt] = list(imports)
        for each in chosen:
            bases = ", ".join(map(ast.unparse, each.bases))
            body += statements(f"class {each.name}Base({bases}):\n    pass")
            each.bases = [expression(f"{each.name}Base", each)]
        program.files[f"{module}.py"] = ast.Module(body, [])
        names = ", ".join(f"{each.name}Base" for each in chosen)
        tree.body[at:at] = statements(f"from {module} import {names}")
