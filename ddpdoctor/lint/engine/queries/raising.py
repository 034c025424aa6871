"""Errors that one rank raises while the others go on to meet."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Exit, Way, events, walk
from ddpdoctor.lint.engine.interpreter.values import (
    Const,
    Either,
    Table,
    Tuple,
    Value,
    What,
    Why,
    text,
)
from ddpdoctor.lint.engine.queries.doing import doers, in_try
from ddpdoctor.lint.engine.queries.partings import met
from ddpdoctor.lint.engine.queries.words import is_world
from ddpdoctor.lint.rule import Related

_NEXT = 3


@dataclass(frozen=True, slots=True)
class LoneError:
    """An error of some ranks."""

    node: ast.AST
    path: str
    notes: tuple[str | Related, ...] = ()
    why: Why | None = None


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
            note = Related.at(by_rank.place, f"they meet after the `if {text(by_rank.test)}`")
            yield LoneError(node.node, node.path, (note,))


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


def missing_things(run: Run) -> Iterator[LoneError]:
    """Uses of what some ranks do not have: it is None there."""
    told: set[What] = set()
    for event, way in events(run.root, "of_some"):
        owner = event.values["owner"]
        assert isinstance(owner.what, Either)
        who = doers(way)
        nothing = owner.what.table(lambda each: each.is_const(None))
        lacking = nothing.ranks()[0] & who.mask if nothing else 0
        if not lacking or owner.what in told or in_try(way) or not owner.agree.sure:
            continue
        if all(_is_clear(each) for each in who.choices):
            told.add(owner.what)
            yield LoneError(event.node, event.path, why=owner.why)


def _is_clear(choice: Choice) -> bool:
    """Whether a condition does not ask, in words that nobody knows, if the thing is there."""
    is_rank = isinstance(choice.condition.what, Table)
    return is_rank or choice.condition.agree.kind == "same" or choice.node is choice.test


def unwanted_lists(run: Run) -> Iterator[LoneError]:
    """Lists that a collective takes of the root alone, given by every rank."""
    for event, way in events(run.root, "collective"):
        root, given = event.values.get("root") or Value(Const(0)), event.values.get("of_root")
        if (
            given is None
            or run.vm.type_of(given) != "list"
            or not is_world(event.values.get("group"))
        ):
            continue
        number = root.constant
        if isinstance(number, int) and doers(way).mask & ~(1 << number) and _is_filled(run, given):
            yield LoneError(event.node, event.path, (f"the root is rank {number}",))


def _is_filled(run: Run, given: Value) -> bool:
    held = run.vm.store.get((given.what, "[]"))
    return held is None or held.what != Tuple(())
