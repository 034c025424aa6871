"""Simulated ranks that train with loaders: what the tests of data and file detectors share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose import diagnose
from ddpdoctor.evidence import (
    Collective,
    Epoch,
    Evidence,
    Fate,
    Group,
    Loader,
    Place,
    RankEvidence,
    Sampler,
    Stuck,
    Wrapper,
)

WORLD = 4
TRAIN = Place("/home/user/train.py", 10, "main")
LOADER, SAMPLER, LOOP, SPLIT = (replace(TRAIN, line=line) for line in (20, 21, 30, 19))
WAIT = Place("/site-packages/torch/distributed/distributed_c10d.py", 5356, "barrier")


def epoch(begun: float = 50.0, **facts: Any) -> Epoch:
    default: dict[str, Any] = {"batches": 4, "steps": 4, "graded": True, "ended": begun + 1}
    return Epoch(begun, LOOP, **{**default, **facts})


def loader(*epochs: Epoch, **facts: Any) -> Loader:
    default: dict[str, Any] = {
        "place": LOADER,
        "dataset": "Images",
        "length": 16,
        "batches": 4,
        "iterable": False,
        "workers": 0,
        "plain": False,
        "identity": "one set",
        "listings": {},
        "by_rank": False,
        "members": None,
        "members_place": None,
        "sampler": None,
        "epochs": dict(enumerate(epochs or (epoch(),), 1)),
    }
    return Loader(**{**default, **facts})


def sampler(rank: int, **facts: Any) -> Sampler:
    return replace(Sampler(16, WORLD, rank, 0, True, SAMPLER), **facts)


def world(loaders: list[list[Loader]] | None = None, *, ended: bool = True) -> list[RankEvidence]:
    """Ranks that train a DDP model, with these loaders by rank, and have ended well."""
    found = []
    for rank in range(WORLD):
        each = RankEvidence(rank, WORLD, 100 + rank)
        each.groups["0"] = Group("0", tuple(range(WORLD)), "gloo", 1800.0, None)
        each.wrappers.append(Wrapper(TRAIN, ("weight",), False, False))
        each.loaders = loaders[rank] if loaders else []
        if ended:
            each.fate = Fate(rank, each.pid, 0, None, 90.0)
        found.append(each)
    return found


def said(ranks: list[RankEvidence]) -> list[Finding]:
    return diagnose(Evidence(WORLD, ranks))


def only(ranks: list[RankEvidence]) -> Finding:
    (finding,) = said(ranks)
    return finding


def lines(finding: Finding) -> list[int]:
    return [each.place.line for each in finding.places if each.place]


def shards(**facts: Any) -> list[list[Loader]]:
    """Loaders with a right sampler each."""
    return [[loader(epoch(order=rank), sampler=sampler(rank), **facts)] for rank in range(WORLD)]


def waiting(rank: RankEvidence, seq: int, op: str, line: int) -> None:
    call = Collective("0", seq, op, 95.0, replace(TRAIN, line=line))
    rank.stuck = Stuck(96.0, 100.0, (WAIT,), call.place, (call,), {"0": seq})
