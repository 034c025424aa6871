"""Places in the text for fixes, in characters, and the edits that rules share."""

from __future__ import annotations

import ast
from typing import Protocol

from ddpdoctor.lint.rule import Edit, characters

Span = tuple[tuple[int, int], tuple[int, int]]


class Lines(Protocol):
    """A file, of which the lines are asked."""

    @property
    def lines(self) -> list[str]:
        """The lines, without their ends."""
        ...


def start_of(module: Lines, node: ast.AST) -> Span:
    """The empty span before a node."""
    place = _place(module, getattr(node, "lineno", 1), getattr(node, "col_offset", 0))
    return place, place


def end_of(module: Lines, node: ast.AST) -> Span:
    """The empty span after a node."""
    place = _place(module, getattr(node, "end_lineno", 1), getattr(node, "end_col_offset", 0))
    return place, place


def whole(module: Lines, node: ast.AST) -> Span:
    """The span of a node."""
    return start_of(module, node)[0], end_of(module, node)[1]


def replace(module: Lines, node: ast.AST, text: str) -> Edit:
    """Put text in the place of a node."""
    return Edit(*whole(module, node), text)


def add_argument(module: Lines, call: ast.Call, text: str) -> Edit | None:
    """Append an argument to a call; None where a comprehension or a comment makes that unsafe."""
    given = [*call.args, *(each.value for each in call.keywords)]
    if len(given) == 1 and isinstance(given[0], ast.GeneratorExp):
        return None
    if not given:
        line, column = end_of(module, call)[1]
        if module.lines[line - 1][column - 2 : column] != "()":
            return None
        return Edit((line, column - 1), (line, column - 1), text)
    last = max(given, key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0))
    line, column = end_of(module, last)[1]
    rest = module.lines[line - 1][column:].lstrip()
    if rest.startswith(")") and last not in call.args and not isinstance(last, ast.Constant):
        # A value in brackets of its own ends behind its node.
        closing = end_of(module, call)[1]
        if closing[0] != line or module.lines[line - 1][column : closing[1]].strip() != ")":
            return None
    return Edit((line, column), (line, column), f", {text}")


def insert_line_before(module: Lines, statement: ast.stmt, text: str) -> Edit | None:
    """A new line before a statement, indented like it; None if it shares its line."""
    line = module.lines[statement.lineno - 1]
    indent = line[: characters(line, statement.col_offset)]
    if indent.strip():
        return None
    place = (statement.lineno, 0)
    return Edit(place, place, f"{indent}{text}\n")


def _place(module: Lines, line: int, offset: int) -> tuple[int, int]:
    return line, characters(module.lines[line - 1], offset)
