"""What comes after what, in the process that does both."""

from __future__ import annotations

from ddpdoctor.lint.engine.interpreter.tree import Called, Choice, Event, Loop, Way


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
