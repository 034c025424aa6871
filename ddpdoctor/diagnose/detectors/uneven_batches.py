"""DDP207: one rank has fewer batches than another, and leaves it waiting.

In training each batch needs all ranks; in any other pass it does where the ranks' own line calls a
collective for each.
"""

from __future__ import annotations

import math
import signal
from collections import Counter
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose import loaders, uneven
from ddpdoctor.diagnose.case import Case, is_casualty
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.parting import explain_parting, has_parted, struck
from ddpdoctor.evidence import Epoch, RankEvidence, named

_INTERRUPTED = {signal.SIGINT, signal.SIGTERM}
_CTRL_C = "KeyboardInterrupt"
_CURE = (
    "Give every rank the same number of batches (DistributedSampler, drop_last, or a count agreed "
    "on first), or train inside Join."
)


@detector(precedence=270, of_absence=True)
def detect(case: Case) -> Iterator[Finding]:
    """Name the shard that ran out, or that was going to when the job was interrupted."""
    if any(rank.joins for rank in case.evidence.ranks):
        return
    for kin in loaders.kin(case.evidence):
        if len(kin) < len(case.evidence.ranks):
            continue
        if _is_for_want(case) and (counts := _ran_out(case, kin)):
            met = struck(case)
            case.explain(*met)
            consequences = explain_parting(case)
            how = "ran out of batches first"
            yield _finding(case, kin, counts, how, consequences, is_proven=not met)
        elif not any(each.trains for each in kin.values()):
            continue
        elif _was_interrupted(case) and (counts := _will_run_out(case, kin)):
            yield _finding(case, kin, counts, "will run out of batches first", ())


def _is_for_want(case: Case) -> bool:
    """Whether ranks have parted; one that asked for a batch more, and got none, has left.

    Or their collectives have met: what one goes on to after its last batch, and a step of others.
    """
    met = struck(case)
    if met:
        return {*map(id, (*case.died, *case.raised))} <= {*map(id, met)}
    others = [each for each in case.raised if each.exception.type != "StopIteration"]
    if len(others) == len(case.raised):
        return has_parted(case)
    return not case.died and all(is_casualty(each.exception) for each in others)


def _ran_out(case: Case, kin: loaders.Kin) -> dict[int, int] | None:
    """Batches by rank in the first epoch that some ranks exhausted before others."""
    agreed = any(
        _talked(rank, before=loaders.first_epoch(kin[rank.rank]).begun)
        for rank in case.evidence.ranks
        if kin[rank.rank].epochs
    )
    for number in sorted(set.intersection(*(set(each.epochs) for each in kin.values()))):
        epochs = {rank: loader.epochs[number] for rank, loader in kin.items()}
        ended = [epoch.batches for epoch in epochs.values() if epoch.ended]
        trains = any(epoch.steps for epoch in epochs.values())
        if not ended or not (trains or _meet_in_each(case, epochs)):
            continue
        counts = {
            rank: epoch.batches
            if epoch.ended
            else max(epoch.batches, epoch.reached, 0 if agreed else kin[rank].batches or 0)
            for rank, epoch in epochs.items()
        }
        if max(counts.values()) > min(ended):
            return counts
    return None


def _meet_in_each(case: Case, epochs: dict[int, Epoch]) -> bool:
    """Whether one line of the ranks' own calls a collective for each batch of this pass."""
    lines = []
    for rank in case.evidence.ranks:
        epoch = epochs[rank.rank]
        until = epoch.ended or math.inf
        within = (c.place for c in rank.collectives if epoch.begun < c.begun < until)
        lines.append({at for at, n in Counter(within).items() if at and n >= epoch.batches > 0})
    return bool(set.intersection(*lines))


def _was_interrupted(case: Case) -> bool:
    """Whether a person, or the system, ended a job in which nothing had gone wrong yet."""
    if case.died or any(each.exception.type != _CTRL_C for each in case.raised):
        return False
    return all(
        rank.fate is not None
        and not rank.fate.killed_by_us
        and (
            rank.fate.signal in _INTERRUPTED
            or any(each.type == _CTRL_C for each in rank.exceptions)
        )
        for rank in case.evidence.ranks
    )


def _will_run_out(case: Case, kin: loaders.Kin) -> dict[int, int] | None:
    """Batches by rank, where they differ and the ranks have not talked about their number."""
    counts = {rank: loader.batches for rank, loader in kin.items() if loader.batches}
    if len(counts) < len(kin) or len(set(counts.values())) == 1:
        return None
    if any(epoch.ended for each in kin.values() for epoch in each.epochs.values()):
        return None
    if any(_talked(rank) for rank in case.evidence.ranks):
        return None
    return counts


def _talked(rank: RankEvidence, before: float = float("inf")) -> bool:
    """Whether the user's code has exchanged anything: it may have been the number of batches."""
    return any(
        c.place is not None and c.op != "barrier" and c.begun < before for c in rank.collectives
    )


def _finding(
    case: Case,
    kin: loaders.Kin,
    counts: dict[int, int],
    how: str,
    consequences: tuple[str, ...],
    *,
    is_proven: bool = True,
) -> Finding:
    fewest, most = min(counts.values()), max(counts.values())
    short = tuple(sorted(rank for rank, count in counts.items() if count == fewest))
    more = next(rank for rank in sorted(counts) if counts[rank] == most)
    loader = kin[short[0]]
    places = [RankPlace(ranks=short, place=loader.place, doing="built the loader")]
    if loader.members_place is not None:
        split = RankPlace(ranks=short, place=loader.members_place, doing="chose its samples")
        places.insert(0, split)
    if loader.epochs:
        place = loaders.latest_epoch(loader).place
        places.append(RankPlace(ranks=short, place=place, doing="iterates it"))
    places += loaders.dealers(kin)
    places += loaders.makers(kin) if loader.iterable else ()
    why = uneven.reason(case.evidence.ranks, kin, counts)
    if why is not None:
        places += why.places
    return Finding(
        code="DDP207",
        title="uneven-batches",
        severity="error",
        certainty="proven" if consequences and is_proven else "evidence",
        ranks=short,
        places=tuple(places),
        cause=f"{named(short)} {how}: {fewest} in an epoch, where rank {more} has {most}, and "
        "each batch needs all ranks." + (f" {why.told}" if why is not None else ""),
        cure=Cure(text=why.cure if why is not None else _CURE),
        evidence=tuple(f"rank {rank}: {counts[rank]} batches" for rank in sorted(counts)[:8]),
        consequences=consequences,
    )
