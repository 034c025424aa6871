"""Each pair of ranks by itself: the one bad cable among many is seen nowhere else."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist

from ddpdoctor.probe.busy import kept_waiting, without
from ddpdoctor.probe.model import Link
from ddpdoctor.probe.talk import Talk

_SMALL, _LARGE = 8, 1 << 20
_FEW = 12
"""Up to so many ranks one pair speaks at a time; with more, disjoint pairs speak side by side."""

_LOOKED_AT_AGAIN, _LOOKS = 20, 3
_LONG_LOOK = 0.2
"""Seconds: what keeps a rank from its CPU for a while must not make its link look slow."""


def links(talk: Talk, budget: float) -> tuple[list[Link], bool]:
    """The pairs that were measured, and whether those are all."""
    rounds = pairings(talk.size)
    if talk.size <= _FEW:
        rounds = [[pair] for matches in rounds for pair in matches]
    each = budget / max(1, len(rounds))
    begun, done = time.monotonic(), 0
    mine: list[dict[str, float]] = []
    for number, matches in enumerate(rounds):
        # A matrix of few ranks is whole, whatever it takes: the pair that is left out may be the
        # only one that is well, and without it none of the others looks slow.
        if talk.size > _FEW and talk.agreed(time.monotonic() - begun) > 1.5 * budget:
            break
        talk.progress.tell("links", f"{number + 1} of {len(rounds)}")
        talk.together()
        for first, second in matches:
            if talk.rank in (first, second):
                measured = _link(talk, first, second, each)
                mine += [measured] if talk.rank == first else []
        done += 1
    talk.together()
    told = _told(talk, mine)
    for again in (each, *[_LONG_LOOK] * _LOOKS):
        told = _look_again(talk, told, again)
    return told, done == len(rounds)


def _told(talk: Talk, mine: list[dict[str, float]]) -> list[Link]:
    told = [Link.model_validate(one) for rank in talk.gathered(mine) for one in rank]
    return sorted(told, key=lambda link: (link.first, link.second))


def _look_again(talk: Talk, told: list[Link], each: float) -> list[Link]:
    """Measure what looks slow again, one pair at a time, and keep the better: noise passes."""
    if not told:
        return told
    fastest = max(link.bandwidth for link in told)
    nearest = min(link.latency for link in told)
    odd = [one for one in told if one.bandwidth < fastest / 2 or one.latency > 2 * nearest]
    odd = sorted(odd, key=lambda link: link.bandwidth)[:_LOOKED_AT_AGAIN]
    mine: list[dict[str, float]] = []
    for link in odd:
        talk.together()
        if talk.rank in (link.first, link.second):
            again = _link(talk, link.first, link.second, each)
            mine += [again] if talk.rank == link.first else []
    talk.together()
    better = {(one.first, one.second): one for one in _told(talk, mine)}
    return [_best(one, better.get((one.first, one.second), one)) for one in told]


def _best(one: Link, other: Link) -> Link:
    return one.model_copy(
        update={
            "latency": min(one.latency, other.latency),
            "bandwidth": max(one.bandwidth, other.bandwidth),
            "lowest": min(each.lowest or each.bandwidth for each in (one, other)),
            "latency_alone": min(each.latency_alone or each.latency for each in (one, other)),
            "bandwidth_alone": max(each.bandwidth_alone or each.bandwidth for each in (one, other)),
        }
    )


def pairings(size: int) -> list[list[tuple[int, int]]]:
    """Rounds in which each rank meets every other once, and none twice in a round (Kirkman)."""
    players: list[int | None] = [*range(size), *([None] if size % 2 else [])]
    count = len(players)
    rounds = []
    for _ in range(count - 1):
        facing = zip(players[: count // 2], reversed(players[count // 2 :]), strict=True)
        rounds.append(
            [(min(a, b), max(a, b)) for a, b in facing if a is not None and b is not None]
        )
        players = [players[0], players[-1], *players[1:-1]]
    return rounds


def _link(talk: Talk, first: int, second: int, budget: float) -> dict[str, float]:
    """What the first of the two measured; the second answers, and tells nothing."""
    small = torch.zeros(_SMALL // 4, device=talk.device)
    large = torch.zeros(_LARGE // 4, device=talk.device)
    _there_and_back(talk, small, first, second)  # opens the connection
    fast, kept_fast = _messages(talk, small, first, second, 15)
    (once,), _ = _messages(talk, large, first, second, 1)
    wanted = torch.tensor([max(1.0, min(50.0, budget / 2 / max(once, 1e-6)))], device=talk.device)
    dist.send(wanted, second) if talk.rank == first else dist.recv(wanted, first)
    slow, kept_slow = _messages(talk, large, first, second, int(wanted.item()))
    nearest, usual = min(fast), _undisturbed(slow)
    return {
        "first": first,
        "second": second,
        "latency": nearest / 2,  # nothing makes a message early: the wire is all that is left
        "latency_alone": without(kept_fast, nearest) / 2,
        "bandwidth": 2 * _LARGE / usual,
        "bandwidth_alone": 2 * _LARGE / without(kept_slow, usual),
        "lowest": 2 * _LARGE / sorted(slow)[-1 - len(slow) // 4],
    }


def _messages(
    talk: Talk, tensor: torch.Tensor, first: int, second: int, count: int
) -> tuple[list[float], float]:
    """Seconds there and back of each, and what the two ranks waited for a CPU in one, on average.

    The kernel is asked before and after all of them: in between it would delay the messages.
    """
    before = kept_waiting()
    times = [_there_and_back(talk, tensor, first, second) for _ in range(count)]
    waited = kept_waiting() - before
    of_second = torch.tensor([waited], dtype=torch.float64, device=talk.device)
    dist.recv(of_second, second) if talk.rank == first else dist.send(of_second, first)
    return times, (waited + float(of_second.item())) / count


def _undisturbed(seconds: list[float]) -> float:
    """The lower quartile: whatever else a machine does only adds to some of them."""
    return sorted(seconds)[len(seconds) // 4]


def _there_and_back(talk: Talk, tensor: torch.Tensor, first: int, second: int) -> float:
    begun = time.perf_counter()
    if talk.rank == first:
        dist.send(tensor, second)
        dist.recv(tensor, second)
    else:
        dist.recv(tensor, first)
        dist.send(tensor, first)
    talk.settle()
    return time.perf_counter() - begun
