"""Statements one after the other: each is run by what its kind is."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ddpdoctor.lint.engine.interpreter.expressions import evaluate
from ddpdoctor.lint.engine.interpreter.machine import Left, Machine
from ddpdoctor.lint.engine.interpreter.statements import (
    branches,
    contexts,
    definitions,
    handling,
    leaving,
    loops,
    plain,
)
from ddpdoctor.lint.engine.interpreter.tree import Seq
from ddpdoctor.lint.engine.interpreter.values import NONE, Value


def run_block(vm: Machine, body: list[ast.stmt]) -> bool:
    """Run statements; False where none of the ways through them reaches the end."""
    for statement in body:
        vm.burn()
        if vm.watched and (vm.path, statement.lineno) in vm.watched:
            vm.emit("stand", "", statement)
        handler = _HANDLERS.get(statement.__class__)
        if handler is None:
            continue
        try:
            if not handler(vm, statement):
                return False
        except Left:
            return False
    return True


def way(vm: Machine, body: list[ast.stmt]) -> Callable[[], Value | None]:
    """What runs a block as one of several ways."""
    return lambda: NONE if run_block(vm, body) else None


def evaluate_quietly(vm: Machine, node: ast.expr) -> Value:
    """A value without the events of its evaluation."""
    outside, vm.out = vm.out, Seq()
    depth = vm.store.open()
    try:
        return evaluate(vm, node)
    finally:
        vm.out = outside
        vm.store.drop(depth)


_HANDLERS: dict[type, Callable[[Machine, Any], bool]] = {
    ast.Expr: plain.expression,
    ast.Assign: plain.assign,
    ast.AnnAssign: plain.annotated,
    ast.AugAssign: plain.augmented,
    ast.Delete: plain.delete,
    ast.Import: plain.import_,
    ast.ImportFrom: plain.import_from,
    ast.Global: plain.global_,
    ast.Nonlocal: plain.nonlocal_,
    ast.FunctionDef: definitions.function,
    ast.AsyncFunctionDef: definitions.function,
    ast.ClassDef: definitions.class_,
    ast.Return: leaving.return_,
    ast.Raise: leaving.raise_,
    ast.Break: leaving.break_,
    ast.Continue: leaving.continue_,
    ast.Assert: leaving.assert_,
    ast.If: branches.if_,
    ast.Match: branches.match,
    ast.For: loops.for_,
    ast.AsyncFor: loops.for_,
    ast.While: loops.while_,
    ast.With: contexts.with_,
    ast.AsyncWith: contexts.with_,
    ast.Try: handling.try_,
    ast.TryStar: handling.try_,
}
