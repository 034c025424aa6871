"""Under which conditions a line runs: the branches around it and the exits before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import SCOPES

_EXIT_CALLS = frozenset({"sys.exit", "exit", "quit", "os._exit"})


@dataclass(frozen=True, slots=True)
class Guard:
    """One condition on the way to a node."""

    test: ast.expr
    holds: bool
    """Whether the node runs when the test is true, or when it is false."""
    kind: Literal["branch", "loop", "exit", "assert"]
    node: ast.AST
    """The If, While, IfExp, BoolOp, match case, or the statement that leaves."""


def guards(module: Module, node: ast.AST) -> Iterator[Guard]:
    """The conditions on the way to a node, innermost first, within its own function."""
    child = node
    for parent in module.ancestors(node):
        if isinstance(child, ast.stmt):
            yield from _exits_before(module, parent, child)
        if isinstance(child, SCOPES):
            return
        yield from _branch(parent, child)
        child = parent


def _branch(parent: ast.AST, child: ast.AST) -> Iterator[Guard]:
    match parent:
        case ast.If(test=test, body=body, orelse=orelse):
            if child in body:
                yield Guard(test, True, "branch", parent)
            elif child in orelse:
                yield Guard(test, False, "branch", parent)
        case ast.While(test=test, body=body) if child in body:
            yield Guard(test, True, "loop", parent)
        case ast.IfExp(test=test, body=yes, orelse=no) if child in (yes, no):
            yield Guard(test, child is yes, "branch", parent)
        case ast.BoolOp(op=op, values=values) if isinstance(child, ast.expr):
            for value in values[: values.index(child)]:
                yield Guard(value, isinstance(op, ast.And), "branch", parent)


def _exits_before(module: Module, parent: ast.AST, child: ast.stmt) -> Iterator[Guard]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if not isinstance(block, list) or child not in block:
            continue
        for before in reversed(block[: block.index(child)]):
            if isinstance(before, ast.If):
                yes, no = leaves(module, before.body), leaves(module, before.orelse)
                if yes is not None and no is None:
                    yield Guard(before.test, False, "exit", yes)
                elif no is not None and yes is None:
                    yield Guard(before.test, True, "exit", no)
            elif isinstance(before, ast.Assert):
                yield Guard(before.test, True, "assert", before)


def leaves(module: Module, block: list[ast.stmt]) -> ast.stmt | None:
    """The statement with which a block always leaves what follows it, or None."""
    if not block:
        return None
    last = block[-1]
    if isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break):
        return last
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return last if module.names.get(last.value) in _EXIT_CALLS else None
    if isinstance(last, ast.If) and last.orelse:
        yes, no = leaves(module, last.body), leaves(module, last.orelse)
        return yes if yes is not None and no is not None else None
    return None
