"""What the heartbeat sees of the main thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ddpdoctor.evidence.checking import changed
from ddpdoctor.evidence.event import event, typed
from ddpdoctor.evidence.events.communication import collective_of
from ddpdoctor.evidence.model import RankEvidence
from ddpdoctor.evidence.records import Stuck

_PAUSE = 0.5
"""Seconds from which on standing still is remembered; what an exception ends is, however short."""
_PAUSES = 32


@event("stuck", lasts=False)
def stuck(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """The main thread has idled in one call."""
    passes, forwards = given.pop("passes", ()), given.pop("forwards", None)
    stand(rank, _stuck(rank, given, time), passes, forwards)


def stand(
    rank: RankEvidence,
    stuck: Stuck,
    passes: Sequence[tuple[int, int, int]],
    forwards: int | None,
) -> None:
    """Note that it stands still, in these passes over its loaders, after so many forward passes."""
    _remember(rank, rank.stuck or rank.working, stuck.seen)
    for loader, number, batches in passes:
        epochs = rank.loaders[loader].epochs if loader < len(rank.loaders) else {}
        if number in epochs:
            epochs[number] = replace(epochs[number], reached=batches)
    rank.forwards, rank.stuck, rank.working = forwards, stuck, None


@event("still", lasts=False)
def still(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """It is still there."""
    if rank.stuck is not None:
        rank.stuck = changed(rank.stuck, seen=time)


@event("working", lasts=False)
def working(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """It computes, and has not communicated for a while."""
    rank.working = _stuck(rank, given, time)


@event("moved", lasts=False)
def moved(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """It goes on."""
    _remember(rank, rank.stuck or rank.working, time)
    rank.stuck = rank.working = rank.forwards = None


@event("alive", lasts=False)
def alive(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """A sign of life, once a second."""
    rank.waits, rank.steps = given["waits"], given["steps"]


@event("step", lasts=False)
def step(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """An optimizer step, the first, second, fourth, eighth, ..."""
    rank.steps = given["number"]


def _stuck(rank: RankEvidence, given: dict[str, Any], time: float) -> Stuck:
    waiting = tuple(collective_of(rank, c) for c in given.pop("waiting", ()))
    awaited = given.pop("awaited", None)
    return Stuck(
        seen=time,
        waiting=waiting,
        awaited=collective_of(rank, awaited) if awaited else None,
        **typed(given),
    )


def _remember(rank: RankEvidence, pause: Stuck | None, time: float) -> None:
    if pause is None:
        return
    if pause.waiting and pause is rank.stuck:
        rank.stood = pause
    errors = (*rank.thrown[-1:], *rank.exceptions[-1:])
    is_broken_off = any(pause.since <= each.time <= time for each in errors)
    if is_broken_off or time - pause.since > _PAUSE:
        rank.pauses.append(replace(pause, seen=time))
        del rank.pauses[:-_PAUSES]
