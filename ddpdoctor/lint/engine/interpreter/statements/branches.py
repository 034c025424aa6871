"""`if` and `match`: the ways that there are, and who takes which."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ddpdoctor.lint.engine.interpreter import folding
from ddpdoctor.lint.engine.interpreter.expressions import evaluate
from ddpdoctor.lint.engine.interpreter.machine import Machine, Path
from ddpdoctor.lint.engine.interpreter.objects import binding, containers
from ddpdoctor.lint.engine.interpreter.statements import blocks
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    MODE,
    NONE,
    NOTHING,
    OPEN,
    UNKNOWN,
    Const,
    Table,
    Value,
)


def if_(vm: Machine, node: ast.If) -> bool:
    """`if x: ...`, with all of its arms."""
    condition = containers.truthy(vm, evaluate(vm, node.test), node.test)
    known = vm.truth(condition)
    if known is not None and vm.was_seen_in(node.orelse if known else node.body):
        condition = Value(NOTHING, UNKNOWN)
    is_written = known is not None and isinstance(condition.what, Const)
    if is_written and (setting := _setting(vm, node, known is True)) is not None:
        condition = setting
    paths = vm.ways(condition, blocks.way(vm, node.body), blocks.way(vm, node.orelse))
    given = vm.given_by(condition) if condition.agree.divergent else ()
    for path in paths:
        path.given = tuple((what, holds) for what, holds, when in given if when is path.holds)
    return vm.choose(node, node.test, condition, paths) is not None


def _setting(vm: Machine, node: ast.If, known: bool) -> Value | None:
    """What a script's own `distributed = False` decides: people change it before they start it."""
    match node.test:
        case ast.Name(id=name):
            is_off, joining = not known, node.body
        case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)):
            is_off, joining = known, node.orelse
        case _:
            return None
    if len(vm.frames) > 1 or not is_off or not joining:
        return None
    if not vm.joins(Path(None, EVERYONE, 0, blocks.way(vm, joining))):
        return None
    vm.store.put((vm.frame.scopes[0], name), Value(MODE))
    return Value(MODE) if joining is node.body else folding.negated(Value(MODE))


def match(vm: Machine, node: ast.Match) -> bool:
    """`match x: ...`, with all of its cases."""
    subject = evaluate(vm, node.subject)
    condition = Value(NOTHING, subject.agree, subject.why)
    left = surely_left = EVERYONE
    paths = []
    for case in node.cases:
        might, surely = _matching(subject, case)
        came = left & might
        paths.append(Path(None, came, came & ~(surely & surely_left), _case(vm, case, subject)))
        left, surely_left = left & ~surely, surely_left & ~might
    paths.append(Path(None, left, left & ~surely_left, lambda: NONE))
    return vm.choose(node, node.subject, condition, paths) is not None


def _matching(subject: Value, case: ast.match_case) -> tuple[int, int]:
    """Masks of the ranks that may match a case, and of those that do."""
    if isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None:
        return EVERYONE, EVERYONE if case.guard is None else 0
    wanted = _wanted(case.pattern)
    entries = folding.entries(subject) if isinstance(subject.what, Table | Const) else None
    if wanted is None or entries is None:
        return EVERYONE, 0
    alike = [OPEN if each is OPEN else each in wanted for each in entries]
    surely, opened = Table(tuple(alike)).ranks()
    return surely | opened, surely if case.guard is None else 0


def _wanted(pattern: ast.pattern) -> list[Any] | None:
    """The constants that a pattern matches, where it matches such alone."""
    match pattern:
        case ast.MatchValue(ast.Constant(value)) | ast.MatchSingleton(value):
            return [value]
        case ast.MatchValue(ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value))):
            return [-value]
        case ast.MatchOr(patterns):
            some = [_wanted(each) for each in patterns]
            return None if None in some else [one for each in some if each for one in each]
    return None


def _case(vm: Machine, case: ast.match_case, subject: Value) -> Callable[[], Value | None]:
    def run() -> Value | None:
        _capture(vm, case.pattern, subject)
        if case.guard is None:
            return NONE if blocks.run_block(vm, case.body) else None
        condition = containers.truthy(vm, evaluate(vm, case.guard), case.guard)
        paths = vm.ways(condition, blocks.way(vm, case.body), lambda: NONE)
        return vm.choose(case.guard, case.guard, condition, paths)

    return run


def _capture(vm: Machine, pattern: ast.pattern, subject: Value) -> None:
    """Bind the names of a pattern: to what they match, or to its parts, which are not known."""
    whole = pattern.name if isinstance(pattern, ast.MatchAs) else None
    for each in ast.walk(pattern):
        name = getattr(each, "name", None)
        if isinstance(name, str):
            part = Value(NOTHING, subject.agree, subject.why)
            binding.give(vm, name, subject if name == whole else part, each)
