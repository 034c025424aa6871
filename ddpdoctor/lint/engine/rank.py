"""Rank taint: which conditions and values depend on the rank.

A condition is *pure* where nothing but the rank (and what is alike on all ranks, such as "is there
a process group") decides it. Its *side* says which ranks pass: the main one, the others, or some.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Literal

from ddpdoctor.lint.engine.guards import Guard, guards
from ddpdoctor.lint.engine.module import Module, params, remembered
from ddpdoctor.lint.engine.trees import dotted, is_constant, keyword, last_name, text
from ddpdoctor.lint.engine.vocabulary import (
    GLOBAL_RANK_VARIABLES,
    MAIN_NAME,
    RANK_CALL,
    RANK_NAME,
    RANK_VARIABLES,
    UNIFORM_NAME,
)

Side = Literal["main", "others", "some"]
_FLIP: dict[Side, Side] = {"main": "others", "others": "main", "some": "some"}
_ONE_RANK = re.compile(r"^(src|dst|root|main|master)(_rank)?$", re.I)
_DEPTH = 6


@dataclass(frozen=True, slots=True)
class RankTest:
    """A condition that the rank has a say in."""

    side: Side
    """The ranks for which it is true."""
    others: tuple[str, ...] = ()
    """What else decides, as written; empty for a pure test."""

    @property
    def pure(self) -> bool:
        """Whether the rank alone decides."""
        return not self.others


@dataclass(frozen=True, slots=True)
class RankGuard:
    """A guard whose test depends on the rank."""

    guard: Guard
    test: RankTest
    side: Side
    """The ranks that get past it."""

    def describe(self) -> str:
        """For people: "stands under `if rank == 0:` (line 85)"."""
        guard = self.guard
        line = getattr(guard.node, "lineno", 0)
        condition = text(guard.test)
        if guard.kind == "loop":
            return f"stands in `while {condition}:` (line {line})"
        if guard.kind == "assert":
            return f"stands after `assert {condition}` (line {line})"
        if guard.kind == "exit":
            word = text(guard.node, 20).split("(")[0].split()[0]
            when = f"if {condition}:" if not guard.holds else f"if {condition}: ... else:"
            return f"stands after `{when} {word}` (line {line})"
        if isinstance(guard.node, ast.If):
            line = guard.node.lineno
            word = "under" if guard.holds else "under the else of"
            return f"stands {word} `if {condition}:` (line {line})"
        return f"runs only when `{condition}` is {'true' if guard.holds else 'false'} (line {line})"


def rank_guards(module: Module, node: ast.AST) -> list[RankGuard]:
    """The rank-dependent conditions on the way to a node, innermost first."""
    found = []
    for guard in guards(module, node):
        if test := rank_test(module, guard.test):
            found.append(RankGuard(guard, test, test.side if guard.holds else _FLIP[test.side]))
    return found


@remembered
def rank_test(module: Module, test: ast.expr, depth: int = _DEPTH) -> RankTest | None:
    """What the rank has to do with a condition; None where it has no say."""
    if depth == 0:
        return None
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = rank_test(module, operand, depth - 1)
            return RankTest(_FLIP[inner.side], inner.others) if inner else None
        case ast.BoolOp(values=values):
            return _of_parts(module, values, depth)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _of_comparison(module, left, op, right, depth)
        case ast.Call(func=ast.Name(id="bool"), args=[only]):
            return rank_test(module, only, depth - 1)
    if is_main(module, test):
        return RankTest("main")
    if is_rank(module, test):
        return RankTest("others")
    if isinstance(test, ast.Call):
        key = module.callee(test)
        if key and not test.args and not test.keywords and module.project.returns_rank(key):
            return RankTest("some")
    if isinstance(test, ast.Name | ast.Attribute):
        values = [value for _, value in module.bindings(test, dotted(test))]
        tests = [rank_test(module, value, depth - 1) for value in values]
        real = [each for each in tests if each is not None]
        # `is_main = True` before `is_main = rank == 0` is a default, not another decision.
        plain = [v for v, t in zip(values, tests, strict=True) if t is None]
        if real and all(isinstance(value, ast.Constant) for value in plain):
            return real[0]
    return None


def _of_parts(module: Module, values: list[ast.expr], depth: int) -> RankTest | None:
    tests = [(value, rank_test(module, value, depth - 1)) for value in values]
    real = [test for _, test in tests if test]
    if not real:
        return None
    others = tuple(
        text(value) for value, test in tests if test is None and not is_uniform(module, value)
    )
    inherited = tuple(other for test in real for other in test.others)
    sides = {test.side for test in real}
    return RankTest(sides.pop() if len(sides) == 1 else "some", others + inherited)


def _of_comparison(
    module: Module, left: ast.expr, op: ast.cmpop, right: ast.expr, depth: int
) -> RankTest | None:
    if is_constant(right, True, False) and isinstance(op, ast.Eq | ast.Is):
        inner = rank_test(module, left, depth - 1)
        flip = inner and is_constant(right, False)
        return RankTest(_FLIP[inner.side], inner.others) if inner and flip else inner
    if isinstance(right, ast.Constant) and not is_rank(module, left):
        if isinstance(left, ast.BinOp) and is_rank(module, left.left):
            return RankTest("some")  # rank % 8 == 0
        return None
    if not is_rank(module, left):
        if is_rank(module, right) and is_constant(left, 0):
            left, right = right, left
        else:
            return None
    if isinstance(right, ast.Tuple | ast.List | ast.Set) and isinstance(op, ast.In | ast.NotIn):
        constants = {ast.unparse(each) for each in right.elts}
        if constants <= {"0", "-1"} and "0" in constants:
            return RankTest("main" if isinstance(op, ast.In) else "others")
        return RankTest("some") if constants - {"-1"} else None
    if is_constant(right, 0):
        match op:
            case ast.Eq() | ast.LtE() | ast.Is():
                return RankTest("main")
            case ast.NotEq() | ast.Gt() | ast.IsNot():
                return RankTest("others")
        return None  # rank >= 0, rank < 0: "is this distributed at all"
    if is_constant(right, 1) and isinstance(op, ast.Lt | ast.GtE):
        return RankTest("main" if isinstance(op, ast.Lt) else "others")
    if is_constant(right, None) or ast.unparse(right) == "-1" or is_rank(module, right):
        return None
    if isinstance(right, ast.Constant) and isinstance(right.value, int):
        return RankTest("some")
    if isinstance(op, ast.Eq | ast.NotEq):
        name = last_name(right)
        if _ONE_RANK.match(name):
            return RankTest("main" if isinstance(op, ast.Eq) else "others")
        if isinstance(right, ast.BinOp):
            return RankTest("some")  # rank == world_size - 1
    return None


def is_main(module: Module, node: ast.expr) -> bool:
    """Whether an expression is, by its name, true on the main rank alone."""
    if isinstance(node, ast.Call):
        return bool(MAIN_NAME.match(last_name(node.func)))
    return bool(MAIN_NAME.match(last_name(node)))


@remembered
def is_rank(module: Module, node: ast.expr | None, depth: int = _DEPTH) -> bool:
    """Whether the value of an expression is this process's rank (global or local)."""
    if depth == 0 or node is None:
        return False
    if isinstance(node, ast.Call):
        return _is_rank_call(module, node, depth)
    if isinstance(node, ast.Subscript):
        return is_variable(module, node, RANK_VARIABLES)
    if isinstance(node, ast.Name | ast.Attribute):
        if RANK_NAME.match(last_name(node)):
            return not is_looped_over(module, node) and last_name(node) not in flags(module)
        return is_spawned(module, node) or any(
            is_rank(module, value, depth - 1) for _, value in module.bindings(node, dotted(node))
        )
    return False


@remembered
def flags(module: Module) -> frozenset[str]:
    """The options of a command line that are a yes or a no: `--rank` may mean "be a rank"."""
    return frozenset(
        str(call.args[0].value).lstrip("-").replace("-", "_")
        for call in module.method_calls("add_argument")
        if call.args and isinstance(call.args[0], ast.Constant)
        if is_constant(keyword(call, "action"), "store_true", "store_false")
    )


@remembered
def is_looped_over(module: Module, node: ast.expr) -> bool:
    """Whether a name is the variable of a loop or comprehension: no property of this process."""
    if not isinstance(node, ast.Name):
        return False
    for each in module.ancestors(node):
        for part in getattr(each, "generators", ()):
            if any(isinstance(n, ast.Name) and n.id == node.id for n in ast.walk(part.target)):
                return True
    found = module.bindings(node, node.id)
    return bool(found) and all(isinstance(statement, ast.For) for statement, _ in found)


def _is_rank_call(module: Module, node: ast.Call, depth: int) -> bool:
    name = last_name(node.func)
    if name == "int" and len(node.args) == 1:
        return is_rank(module, node.args[0], depth - 1)
    if RANK_CALL.match(name):
        return not node.args or is_constant(node.args[0], None)
    return is_variable(module, node, RANK_VARIABLES)


def is_variable(module: Module, node: ast.expr, names: frozenset[str]) -> bool:
    """Whether an expression reads one of these environment variables."""
    return environment_name(module, node) in names


def environment_name(module: Module, node: ast.expr) -> str:
    """The literal name that `os.environ[...]`, `.get(...)` or `os.getenv(...)` reads, or ""."""
    key: ast.expr | None = None
    if isinstance(node, ast.Subscript) and module.name_of(node.value) == "os.environ":
        key = node.slice
    elif isinstance(node, ast.Call) and node.args:
        name = importing_name(module, node)
        if name in ("os.getenv", "os.environ.get", "os.environ.pop"):
            key = node.args[0]
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""


def importing_name(module: Module, node: ast.Call) -> str:
    """The resolved name of what a call calls."""
    return module.names.get(node) or module.name_of(node.func)


@remembered
def is_global_rank(module: Module, node: ast.expr | None, depth: int = _DEPTH) -> bool:
    """Whether a value certainly is the rank in the whole job, read from torch or the variable."""
    if depth == 0 or node is None:
        return False
    if isinstance(node, ast.Call):
        name = importing_name(module, node)
        if name == "torch.distributed.get_rank":
            return not node.args and not node.keywords
        if name == "int" and len(node.args) == 1:
            return is_global_rank(module, node.args[0], depth - 1)
        return is_variable(module, node, GLOBAL_RANK_VARIABLES)
    if isinstance(node, ast.Subscript):
        return is_variable(module, node, GLOBAL_RANK_VARIABLES)
    if isinstance(node, ast.Name | ast.Attribute):
        values = [value for _, value in module.bindings(node, dotted(node))]
        real = [value for value in values if not isinstance(value, ast.Constant)]
        return bool(real) and all(is_global_rank(module, value, depth - 1) for value in real)
    return False


def is_spawned(module: Module, node: ast.Name | ast.Attribute) -> bool:
    """Whether a name is the first parameter of a function that `mp.spawn` starts in each rank."""
    if not isinstance(node, ast.Name):
        return False
    function = module.function(node)
    if function is None or params(function)[:1] != [node.id]:
        return False
    return function.name in spawn_targets(module)


@remembered
def spawn_targets(module: Module) -> set[str]:
    """The functions of this file that are started once per rank."""
    return {
        last_name(call.args[0])
        for name, calls in module.by_name.items()
        if name.endswith((".spawn", ".start_processes")) and "multiprocessing" in name
        for call in calls
        if call.args
    }


def is_uniform(module: Module, node: ast.expr) -> bool:
    """Whether a condition only asks whether, or how widely, this job is distributed."""
    names = [
        last_name(each)
        for each in module.within(node)
        if isinstance(each, ast.Name | ast.Attribute)
        and not isinstance(module.parents.get(each), ast.Attribute)
    ]
    plain = [name for name in names if not UNIFORM_NAME.search(name)]
    return not plain or all(RANK_NAME.match(name) for name in plain)
