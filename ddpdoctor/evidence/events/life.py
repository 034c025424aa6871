"""How a rank began, joined its groups, left them and ended."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ddpdoctor.evidence.event import PASSING, event, record, typed, value_of
from ddpdoctor.evidence.model import RankEvidence
from ddpdoctor.evidence.records import Group, Place, Warned


@event("anew")
def anew(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """The log begins again with all that lasts: forget what it is about to say again."""
    rank.forget(passing=False)
    rank.records = {cls: rows for cls, rows in rank.records.items() if cls in PASSING}


@event("start")
def start(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """A process calls itself this rank; the log of a later one begins where that of another was."""
    joined_by, nested = rank.joined_by, rank.nested
    if rank.pid not in (0, given["pid"]):
        rank.forget()
    rank.joined_by, rank.nested = joined_by, nested
    rank.pid, rank.torch = given["pid"], given["torch"]
    rank.python = given.get("python") or ""
    rank.world_size, rank.boot = given["world_size"], given["boot"]
    rank.host, rank.agent = given.get("host") or "", given.get("agent") or 0
    rank.local_world_size = given.get("local_world_size") or 0
    rank.parent = given.get("parent") or 0


@event("joining")
def joining(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """It begins to join the process group."""
    rank.joined_by.add(given.get("pid") or rank.pid)
    rank.joining, rank.joining_place = time, value_of("place", given["place"])
    rank.source = given.get("source") or ""
    rank.nested = rank.joining_place if given.get("nested") else rank.nested
    rank.meeting, rank.wanted = given.get("meeting") or "", given.get("wanted") or 0
    rank.master, rank.run = given.get("master") or "", given.get("run") or ""
    rank.launcher, rank.started = given.get("launcher") or "", given.get("started") or 0
    rank.set_at = {name: Place(*frame) for name, frame in given.get("set_at", {}).items()}
    rank.unhosted = bool(given.get("unhosted"))
    rank.started_at = value_of("place", given.get("started_at"))


@event("group")
def group(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """It has joined a group."""
    said = typed(given)
    ranks = said.pop("ranks")
    joined = _evenly(**ranks, **said) if isinstance(ranks, dict) else Group(ranks=ranks, **said)
    rank.groups[joined.name] = joined


@lru_cache(4096)
def _evenly(first: int, last: int, step: int, **said: Any) -> Group:
    """One object for all ranks that say the same: a large group is told by each of its members."""
    return Group(ranks=tuple(range(first, last + 1, step)), **said)


@event("dissolved")
def dissolved(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """It has destroyed one group, and not the world."""
    rank.dissolved.append(given["name"])


@event("leaving")
def leaving(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """It begins to destroy its process group."""
    rank.leaving, rank.left = time, None  # it may have left another before
    rank.left_place = value_of("place", given.get("place"))
    rank.forwards = given.get("forwards")
    rank.steps = given.get("steps", rank.steps)


@event("left")
def left(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """It has destroyed its process group."""
    rank.left, rank.left_place = time, value_of("place", given.get("place"))


@event("exiting")
def exiting(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """Its interpreter begins to exit."""
    rank.exiting = time
    rank.steps = given.get("steps", rank.steps)


@event("join")
def join(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """`Join` was entered: uneven inputs on purpose."""
    rank.joins += 1


record("warning", into="warnings")(Warned)
