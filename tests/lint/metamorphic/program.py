"""A program as syntax trees whose every node knows from which line of the original it stems."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

Line = tuple[str, int]
"""File and line of the original."""


@dataclass
class Program:
    """The files of one program; a transformation changes a copy of them in place."""

    files: dict[str, ast.Module]
    entry: str
    """The file that is started."""

    @classmethod
    def read(cls, texts: dict[str, str], entry: str) -> Program:
        """Parse, and note at each node where it stands."""
        files = {name: ast.parse(text) for name, text in texts.items()}
        for name, tree in files.items():
            for node in ast.walk(tree):
                if hasattr(node, "lineno"):
                    mark(node, {(name, node.lineno)})
        return cls(files, entry)

    def copy(self) -> Program:
        """What was read, for a transformation to change."""
        return Program(pickle.loads(self._pickled), self.entry)

    @cached_property
    def _pickled(self) -> bytes:  # copy.deepcopy takes five times as long
        return pickle.dumps(self.files)

    @cached_property
    def printed(self) -> dict[str, str]:
        """The files as Python prints them; a program is changed no more when this is asked."""
        return {
            name: ast.unparse(ast.fix_missing_locations(tree)) + "\n"
            for name, tree in self.files.items()
        }

    def nodes(self) -> Iterator[ast.AST]:
        for tree in self.files.values():
            yield from ast.walk(tree)

    def modules(self) -> set[str]:
        """The names under which the files are imported."""
        return {name.removesuffix(".py") for name in self.files}


@dataclass(frozen=True)
class Text:
    """A program in words again."""

    files: dict[str, str]
    origins: dict[Line, frozenset[Line]]
    """Of each line that begins a statement: the lines of the original that it stands for."""


def mark(node: ast.AST, lines: Iterable[Line]) -> None:
    node.origin = frozenset(lines)  # type: ignore[attr-defined]


def origin(node: ast.AST) -> frozenset[Line]:
    return getattr(node, "origin", frozenset())


def stems_from(new: ast.AST, *old: ast.AST) -> ast.AST:
    """Say of whatever in `new` has no place of its own that it stands for all of `old`."""
    lines = frozenset().union(*(origin(node) for each in old for node in ast.walk(each)))
    for node in ast.walk(new):
        # What has no place, as Load() and Add(), is one object that all programs share.
        if node._attributes and not origin(node):
            mark(node, lines)
    return new


def statements(source: str, *old: ast.AST) -> list[ast.stmt]:
    """Parsed statements that stand for `old`."""
    tree = ast.parse(source)
    for each in tree.body:
        stems_from(each, *old)
    return tree.body


def expression(source: str, *old: ast.AST) -> ast.expr:
    """A parsed expression that stands for `old`."""
    node = ast.parse(source, mode="eval").body
    stems_from(node, *old)
    return node


def text(program: Program) -> Text:
    """Print a program, and find each printed line's origins."""
    origins: dict[Line, frozenset[Line]] = {}
    for name, tree in program.files.items():
        printed = ast.parse(program.printed[name])
        for old, new in zip(_ordered(tree), _ordered(printed), strict=True):
            lines = frozenset().union(*(origin(node) for node in _head(old)))
            origins[name, new.lineno] = origins.get((name, new.lineno), frozenset()) | lines
            for before, after in zip(_decorators(old), _decorators(new), strict=True):
                lines = frozenset().union(*(origin(node) for node in ast.walk(before)))
                origins[name, after.lineno] = lines
    return Text(program.printed, origins)


def _ordered(tree: ast.AST) -> Iterator[ast.stmt | ast.excepthandler]:
    """Statements and handlers, as they stand."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.stmt | ast.excepthandler):
            yield child
        yield from _ordered(child)


def _head(node: ast.AST) -> Iterator[ast.AST]:
    """A statement without those below it."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _head(child)


def _decorators(node: ast.AST) -> list[ast.expr]:
    return getattr(node, "decorator_list", [])
