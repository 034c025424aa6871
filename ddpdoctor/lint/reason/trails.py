"""Stacks as ways through the program, and what two of them share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import dropwhile

from ddpdoctor.lint.reason.turns import Line, Turn


@dataclass(slots=True)
class Trail:
    """A stack as a way through the program."""

    lines: tuple[Line, ...]
    turns: list[Turn] = field(default_factory=list)
    """Innermost first."""


def shared_lines(mine: Sequence[Line], theirs: Sequence[Line]) -> int:
    """How many of the outermost lines are alike."""
    alike = (one == other for one, other in zip(mine, theirs, strict=False))
    return next((n for n, each in enumerate(alike) if not each), min(len(mine), len(theirs)))


def beyond(trail: Trail, other: Trail, common: int) -> list[int]:
    """The numbers of the turns of one way that the other does not share."""
    shared = {turn.identity for turn in other.turns if turn.depth == common}
    return [
        number
        for number, turn in enumerate(trail.turns)
        if turn.depth > common or (turn.depth == common and turn.identity not in shared)
    ]


def is_unbroken(matched: list[int | None]) -> bool:
    """Whether a way, once it has come to a line of a stack, goes through the rest and no other."""
    inner = list(dropwhile(lambda each: each is None, matched))
    if not inner or (inner[0] and len(inner) < len(matched)):
        return False  # through other lines to one of its inner ones
    return inner == list(range(inner[0] or 0, (inner[0] or 0) + len(inner)))


def aligned(lines: list[Line], stack: tuple[Line, ...]) -> list[int | None]:
    """Of each line of a way, which of the stack it is; None for what the stack does not show."""
    longest = [[0] * (len(stack) + 1) for _ in range(len(lines) + 1)]
    for i, one in enumerate(lines):
        for j, other in enumerate(stack):
            skip = max(longest[i][j + 1], longest[i + 1][j])
            longest[i + 1][j + 1] = longest[i][j] + 1 if one == other else skip
    found: list[int | None] = [None] * len(lines)
    i, j = len(lines), len(stack)
    while i and j:
        if lines[i - 1] == stack[j - 1]:
            i, j = i - 1, j - 1
            found[i] = j
        elif longest[i - 1][j] >= longest[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return found
