"""Why a rank went another way: what the source says about the way to a line."""

from __future__ import annotations

import ast
from pathlib import PurePath

from ddpdoctor.lint.engine.divergence import local_reason
from ddpdoctor.lint.engine.guards import Guard, guards
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.project import Project
from ddpdoctor.lint.engine.rank import rank_guards
from ddpdoctor.lint.engine.source import Unreadable
from ddpdoctor.lint.engine.trees import last_name, text
from ddpdoctor.lint.linter import Reader, survey_one


def why(file: str, line: int) -> list[str]:
    """The conditions on the way to a line that ranks may answer differently, innermost first.

    "barrier() stands under `if rank == 0:` (train.py:85)". Where nothing in the line's own function
    says so, the places that call the function are asked. Empty where the source says nothing, or
    cannot be read.
    """
    module = read(file)
    if module is None:
        return []
    try:
        node = node_at(module, line)
        if node is None:
            return []
        return _explained(module, node) or _through_callers(module, node)
    except RecursionError:
        return []


def read(file: str) -> Module | None:
    """One file as the rules see it, without the rest of its project; None if it is unreadable."""
    reader = Reader()
    surveyed = survey_one(file, reader)
    if surveyed.survey is None:
        return None
    try:
        return Module(reader.source(file), surveyed.survey, Project([surveyed.survey]))
    except (Unreadable, RecursionError):
        return None


def node_at(module: Module, line: int) -> ast.AST | None:
    """The call on the line that the user most likely means, else the innermost statement."""
    calls = [call for call in module.calls if call.lineno <= line <= (call.end_lineno or 0)]
    direct = {call for call, _ in module.collectives}
    if calls:
        return max(calls, key=lambda call: (call in direct, call.lineno, -call.col_offset))
    statements = [
        node
        for node in module.parents
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(statements, key=lambda node: (node.lineno, node.col_offset), default=None)


def _explained(module: Module, node: ast.AST) -> list[str]:
    name = PurePath(module.path).name
    subject = f"{last_name(node.func)}()" if isinstance(node, ast.Call) else "this line"
    found = [
        f"{subject} {each.describe()}".replace("(line ", f"({name}:")
        for each in rank_guards(module, node)
    ]
    by_rank = {id(each.guard.test) for each in rank_guards(module, node)}
    for guard in guards(module, node):
        if id(guard.test) not in by_rank and (reason := local_reason(module, guard.test)):
            found.append(f"{subject} {_stands(guard, name)}, and {reason}")
    return found


def _stands(guard: Guard, name: str) -> str:
    line = getattr(guard.node, "lineno", guard.test.lineno)
    word = "stands after an exit" if guard.kind == "exit" else "stands"
    return f"{word} under `{text(guard.test)}` ({name}:{line})"


def _through_callers(module: Module, node: ast.AST) -> list[str]:
    function = module.function(node)
    if function is None:
        return []
    return [
        reason
        for call in module.calls
        if last_name(call.func) == function.name and not module.inside(call, function)
        for reason in _explained(module, call)
    ]
