"""Statements after which one is not here any more: return, raise, break, continue, assert."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.expressions import evaluate
from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.objects import binding, containers
from ddpdoctor.lint.engine.interpreter.statements import loops
from ddpdoctor.lint.engine.interpreter.values import (
    FIRST_HOST,
    NONE,
    NOTHING,
    Const,
    Table,
    Tensor,
    Tuple,
    Value,
    What,
    blended,
    within,
)


def return_(vm: Machine, node: ast.Return) -> bool:
    """`return x`: nobody comes to what follows."""
    frame, lazily = vm.frame, vm.lazily
    if id(frame.call) in lazily and node.value is not None:
        vm.lazily |= loops.makers(vm, node.value)
    try:
        value = evaluate(vm, node.value)
    finally:
        vm.lazily = lazily
    for loop in frame.loops:
        by = [each for each in vm.conditions[loop.conditions :] if each.agree.divergent]
        value = _of_the_round(value, frozenset(_parts(loop.turn)), by) if by else value
    plain = isinstance(node.value, ast.Name | ast.Constant | None)
    if value.agree.divergent and value.why is not None and not plain:
        said = f"{vm.frame.name}() returns it"
        value = Value(value.what, value.agree, vm.why(said, node, value.why))
    frame.returns.append((value, vm.state(frame.depth, frame.conditions)))
    vm.leave("return", node, value)
    return False


def _of_the_round(value: Value, turn: frozenset[What], by: list[Value]) -> Value:
    """A value of the round in which a rank leaves a loop, which its own condition decides."""
    if isinstance(value.what, Tuple):
        items = tuple(_of_the_round(each, turn, by) for each in value.what.items)
        return Value(Tuple(items), value.agree, value.why)
    if turn.isdisjoint(within(value.what)):
        return value
    agree, why = blended([value, *by])
    return Value(value.what, agree, why)


def _parts(value: Value) -> Iterator[What]:
    """What is no constant in a value, part by part."""
    if isinstance(value.what, Tuple):
        for each in value.what.items:
            yield from _parts(each)
    elif not isinstance(value.what, Const) and value.what != NOTHING:
        yield value.what


def raise_(vm: Machine, node: ast.Raise) -> bool:
    """`raise E`: nobody comes to what follows."""
    value = evaluate(vm, node.exc) if node.exc is not None else NONE
    if vm.tries:
        record = vm.tries[-1]
        record.raised.append(vm.state(record.depth, record.conditions))
    vm.leave("raise", node, value)
    return False


def break_(vm: Machine, node: ast.Break) -> bool:
    """`break`, out of the innermost loop."""
    if vm.frame.loops:
        record = vm.frame.loops[-1]
        record.breaks.append(vm.state(record.depth, record.conditions))
    vm.leave("break", node)
    return False


def continue_(vm: Machine, node: ast.Continue) -> bool:
    """`continue`, with the next round."""
    if vm.frame.loops:
        record = vm.frame.loops[-1]
        record.continues.append(vm.state(record.depth, record.conditions))
    vm.leave("continue", node)
    return False


def assert_(vm: Machine, node: ast.Assert) -> bool:
    """`assert x`: who goes on has found it true."""
    condition = containers.truthy(vm, evaluate(vm, node.test), node.test)
    if isinstance(condition.what, Table) and condition.what.ranks() == (FIRST_HOST, 0):
        vm.there = FIRST_HOST  # a job of one host, as it says itself
        return True

    def fail() -> None:
        vm.leave("assert", node)

    paths = vm.ways(condition, lambda: NONE, fail)
    goes_on = vm.choose(node, node.test, condition, paths) is not None
    if (asked := _told_a_number(node.test)) is not None:
        value = evaluate(vm, asked)
        if isinstance(value.what, Tensor):
            plain = Value(Tensor(vm.site(node, "number")), value.agree, value.why)
            binding.bind(vm, asked, vm.computed(plain, "item", (value,), node))
    return goes_on


_NUMBERS = {"int", "float", "bool"}


def _told_a_number(test: ast.expr) -> ast.Name | ast.Attribute | None:
    """What `isinstance(x, (int, float))` says to be a plain number, without a graph."""
    match test:
        case ast.Call(
            func=ast.Name(id="isinstance"), args=[ast.Name() | ast.Attribute() as asked, kinds]
        ):
            named = {each.id for each in ast.walk(kinds) if isinstance(each, ast.Name)}
            return asked if named and named <= _NUMBERS else None
    return None
