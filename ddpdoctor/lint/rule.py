"""What a rule is, and what it says: the vocabulary between the rules and the rest of lint."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ddpdoctor.catalog import Finding, Severity
    from ddpdoctor.lint.engine.interpreter.program import Run
    from ddpdoctor.lint.engine.interpreter.values import Place, Why

Confidence = Literal["certain", "likely"]


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text between two places (line from 1, column from 0 in characters)."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that belong together."""

    edits: tuple[Edit, ...]
    safe: bool = True
    """Whether it changes nothing but the bug."""


@dataclass(frozen=True, slots=True, order=True)
class Related:
    """Another place that has to do with a finding."""

    path: str
    line: int
    message: str

    @classmethod
    def at(cls, place: Place, message: str) -> Related:
        """What is there to say of a place."""
        return cls(place.path, place.line, message)


@dataclass(frozen=True, slots=True)
class Hit:
    """What a rule yields: the node, and the words."""

    node: ast.AST
    message: str
    notes: tuple[str | Related, ...] = ()
    why: Why | None = None
    """Why the value is as it is that it speaks of: the chain is told behind the notes."""
    help: str = ""
    fix: Fix | None = None
    confidence: Confidence | None = None
    """Where this case is less (or more) sure than the rule usually is."""
    harmless: bool = False
    """Whether this case does little harm, where the rule's others do."""
    stands: bool = False
    """Whether no other program can show it to be right: this one does both there."""
    path: str = ""
    """The file of the node; of what is run, where it is not said."""


@dataclass(frozen=True, slots=True)
class About:
    """The facts of a rule."""

    code: str
    name: str
    confidence: Confidence
    harmless: bool = False
    """Whether it does little harm in most code: it is told as information then."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: a file under rules/, whose docstring is its documentation."""

    code: str
    name: str
    confidence: Confidence
    check: Callable[[Run], Iterable[Hit]]
    documentation: str
    harmless: bool = False
    clears: Callable[[Run], Iterable[tuple[ast.AST, str]]] | None = None
    """Places, each with its file, that a program shows to be right, whatever another suggests."""


@dataclass(frozen=True, slots=True, order=True)
class Diagnostic:
    """One finding at one place of one file."""

    path: str
    line: int
    column: int
    """From 1, in characters."""
    code: str
    name: str
    confidence: Confidence
    message: str
    notes: tuple[str, ...] = ()
    help: str = ""
    end_line: int = 0
    end_column: int = 0
    function: str = "<module>"
    excerpt: str = ""
    """The line of source, without its end."""
    fix: Fix | None = field(default=None, compare=False)
    cell: int = 0
    """For a notebook: the number of the cell, in which `line` then counts."""
    related: tuple[Related, ...] = ()
    """The places that its notes speak of, nearest first."""
    statement: tuple[int, int] = field(default=(0, 0), compare=False)
    """First and last line of the statement: a comment on any of them suppresses."""
    harmless: bool = False
    stands: bool = field(default=False, compare=False)
    """Whether no other program can show it to be right."""

    @property
    def severity(self) -> Severity:
        """How grave it is, as all commands say it."""
        return "info" if self.harmless else _SEVERITY[self.confidence]

    def finding(self) -> Finding:
        """The same in the shape that all commands share."""
        from ddpdoctor import catalog
        from ddpdoctor.evidence import Place

        here = Place(self.path, self.line, self.function)
        places = [catalog.RankPlace(ranks=(), place=here, doing="")]
        for at in self.related:
            there = Place(at.path, at.line, "")
            places.append(catalog.RankPlace(ranks=(), place=there, doing=at.message))
        cure = catalog.Cure(text=self.help)
        if self.fix:
            edits = tuple(
                catalog.Edit(start=e.start, end=e.end, text=e.text) for e in self.fix.edits
            )
            applicability: Literal["safe", "unsafe"] = "safe" if self.fix.safe else "unsafe"
            cure = catalog.Cure(text=self.help, applicability=applicability, edits=edits)
        return catalog.Finding(
            code=self.code,
            title=self.name,
            severity=self.severity,
            certainty=self.confidence,
            ranks=(),
            places=tuple(places),
            cause=self.message,
            cure=cure,
            evidence=self.notes,
            span=catalog.Span(
                column=self.column,
                end_line=max(self.line, self.end_line),
                end_column=self.end_column,
                cell=self.cell,
            ),
        )


_SEVERITY: dict[Confidence, Severity] = {"certain": "error", "likely": "warning"}


@dataclass(frozen=True, slots=True, order=True)
class Trouble:
    """A file that could not be looked at, or not wholly."""

    path: str
    message: str


def characters(line: str, offset: int) -> int:
    """A column in UTF-8 bytes, as `ast` counts, in characters."""
    if line.isascii():
        return offset
    return len(line.encode()[:offset].decode(errors="ignore"))
