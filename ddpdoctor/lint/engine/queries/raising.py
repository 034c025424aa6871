"""Errors that one rank raises while the others go on to meet."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Exit, Way, walk
from ddpdoctor.lint.engine.interpreter.values import Table, text
from ddpdoctor.lint.engine.queries.partings import met

_NEXT = 3


@dataclass(frozen=True, slots=True)
class LoneError:
    """An error of one rank."""

    exit: Exit
    notes: tuple[str, ...]


def lone_errors(run: Run) -> Iterator[LoneError]:
    """Errors by the disk's answer to one rank, right before all ranks meet."""
    seen: set[int] = set()
    for node, way in walk(run.root):
        if not isinstance(node, Exit) or node.kind != "raise" or id(node.node) in seen:
            continue
        if not isinstance(node.node, ast.Raise) or _is_caught(way):
            continue
        by_rank, by_disk = _conditions(way)
        if by_rank is None or not by_disk:
            continue
        index = next(i for i, step in enumerate(way) if step.node is by_rank)
        after = list(met(way[index].rest[:_NEXT]))
        if after and any(arm.body.items for arm in by_rank.arms):
            seen.add(id(node.node))
            line = getattr(by_rank.node, "lineno", 1)
            note = f"they meet after the `if {text(by_rank.test)}` at line {line}"
            yield LoneError(node, (note,))


def _conditions(way: Way) -> tuple[Choice | None, bool]:
    by_rank: Choice | None = None
    by_disk = False
    for step in way:
        node = step.node
        if isinstance(node, Choice):
            agree = node.condition.agree
            if isinstance(node.condition.what, Table) and agree.kind in ("rank", "local"):
                by_rank = by_rank or node
            by_disk = by_disk or agree.cause == "disk"
    return by_rank, by_disk


def _is_caught(way: Way) -> bool:
    return any(isinstance(s.node, Choice) and isinstance(s.node.node, ast.Try) for s in way)
