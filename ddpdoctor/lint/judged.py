"""What came of running a file, and of all of them together."""

from __future__ import annotations

from dataclasses import dataclass, field

from ddpdoctor.lint.rule import Diagnostic

Function = tuple[str, int]
"""(file, line) of a function."""
Right = tuple[str, int, str]
"""(file, line, code) of what is no finding."""


@dataclass(slots=True)
class Judged:
    """What came of running one file."""

    path: str
    found: list[Diagnostic] = field(default_factory=list)
    alone: dict[Function, list[Diagnostic]] = field(default_factory=dict)
    """Of each function that this file does not call: what is found in it with any arguments."""
    visited: frozenset[Function] = frozenset()
    right: frozenset[Right] = frozenset()
    """What this program shows to be right, whatever another suggests."""
    files: tuple[str, ...] = ()
    """All files that the findings depend on."""
    troubles: list[str] = field(default_factory=list)
    is_cut: bool = False
    """Whether the program is too long to have been followed to its end."""


def together(judged: list[Judged], wanted: set[str]) -> dict[str, list[Diagnostic]]:
    """File -> its findings: what runs of others have shown comes first."""
    visited = frozenset().union(*(each.visited for each in judged)) if judged else frozenset()
    right = frozenset().union(*(each.right for each in judged)) if judged else frozenset()
    best: dict[tuple[str, int, int, str], Diagnostic] = {}
    for each in judged:
        alone = [d for at, found in each.alone.items() if at not in visited for d in found]
        for diagnostic in (*each.found, *alone):
            if diagnostic.path not in wanted:
                continue
            at = (diagnostic.path, diagnostic.line, diagnostic.code)
            if at in right and not diagnostic.stands:
                continue
            key = (diagnostic.path, diagnostic.line, diagnostic.column, diagnostic.code)
            old = best.get(key)
            if old is None or (old.confidence, diagnostic.confidence) == ("likely", "certain"):
                best[key] = diagnostic
    result: dict[str, list[Diagnostic]] = {}
    for diagnostic in best.values():
        result.setdefault(diagnostic.path, []).append(diagnostic)
    return result
