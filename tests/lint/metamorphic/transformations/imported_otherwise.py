"""`import torch.distributed as dist` becomes `from torch import distributed as x1`."""

from __future__ import annotations

import ast

from tests.lint.metamorphic.program import Program, origin, statements
from tests.lint.metamorphic.scopes import bound, fresh, functions


def transform(program: Program) -> None:
    shadowed = set().union(*(bound(each) for each in functions(program)))
    free = fresh(program, "x")
    for tree in program.files.values():
        new: dict[str, str] = {}
        for number, node in enumerate(tree.body):
            stem = f"{free}{number}"
            match node:
                case ast.Import(names=[ast.alias(name=what, asname=str(name))]) if "." in what:
                    if name not in shadowed:
                        new[name] = stem
                        parent, _, last = what.rpartition(".")
                        source = f"from {parent} import {last} as {stem}"
                        tree.body[number] = statements(source, node)[0]
                case ast.ImportFrom(module=str(module), level=0) if module != "__future__":
                    for place, each in enumerate(node.names):
                        name = each.asname or each.name
                        if name not in shadowed and name != "*":
                            each.asname = new[name] = f"{stem}_{place}"
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in new:
                node.id = new[node.id]
            assert origin(node) is not None
