"""What comes after what, in the process that does both."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.loading import Text
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Choice, Event, Loop, Way, events


def is_after(first: Way, second: Way) -> bool:
    """Whether a process that does the first does the second later: not where ways part."""
    for one, other in zip(first, second, strict=False):
        if one.seq is not other.seq:
            return False
        if one.index != other.index:
            return one.index < other.index and not is_spawned(beyond(first, second))
    return False


def is_sure(way: Way) -> bool:
    """Whether it is done whatever a condition says, and once."""
    return not any(isinstance(step.node, Choice | Loop) for step in way)


def is_spawned(way: Way) -> bool:
    """Whether a function that mp.spawn started is on the way."""
    return start_of(way) >= 0


def start_of(way: Way) -> int:
    """Where on the way mp.spawn starts a function, -1 where it does not."""
    started: list[object] = []
    found = -1
    for number, step in enumerate(way):
        before = step.seq.items[step.index - 1] if step.index else None
        if isinstance(before, Event) and before.kind == "spawn":
            started.append(before.node)
        if isinstance(step.node, Called) and any(each is step.node.node for each in started):
            found = number  # itself, or the one of several that it may be
    return found


def beyond(first: Way, second: Way) -> Way:
    """The steps of both ways that they do not share."""
    shared = 0
    for one, other in zip(first, second, strict=False):
        if one.seq is not other.seq or one.index != other.index:
            break
        shared += 1
    return (*first[shared:], *second[shared:])


def called_beside(at: Way, to: Way) -> Called | None:
    """The outermost call on one way that the other does not go through."""
    shared = sum(1 for here, there in zip(at, to, strict=False) if here.node is there.node)
    return next((step.node for step in at[shared:] if isinstance(step.node, Called)), None)


def asked_too_early(run: Run) -> Iterator[tuple[Event, Way, Event, Way]]:
    """Questions for a process group that is joined later, each with the joining.

    But for those by which it is joined: `if not is_initialized(): init_process_group()`.
    """
    joins = list(events(run.root, "init"))
    for asked, way in events(run.root, "ask") if run.vm.took_for_alone else ():
        for join, to in joins:
            if is_after(way, to) and not _is_joined_by(run, asked, way, join, to):
                yield asked, way, join, to
                break


def _is_joined_by(run: Run, asked: Event, way: Way, join: Event, to: Way) -> bool:
    asks, joins = _first_of_its_own(asked, way, to), _first_of_its_own(join, to, way)
    source = run.source(asks.path)
    return source is not None and any(
        any(part is asks.node for part in ast.walk(test))
        and any(part is joins.node for each in decided for part in ast.walk(each))
        for test, decided in _decisions(source)
    )


def _decisions(source: Text) -> Iterator[tuple[ast.expr, list[ast.stmt]]]:
    """The test of each `if`, with the statements that it decides on: all behind one that leaves."""
    fields = (getattr(x, f, None) for x in source.nodes for f in ("body", "orelse", "finalbody"))
    for block in (each for each in fields if isinstance(each, list)):
        for number, each in enumerate(block):
            if isinstance(each, ast.If):
                ends = (arm[-1] for arm in (each.body, each.orelse) if arm)
                leaves = any(isinstance(end, ast.Return | ast.Raise) for end in ends)
                yield each.test, block[number:] if leaves else [each]


def _first_of_its_own(event: Event, way: Way, other: Way) -> Called | Event:
    """The call by which a way leaves what it shares with another, or its end."""
    own = (step.node for step in beyond(way, other) if step in way)
    return next((each for each in own if isinstance(each, Called)), event)
