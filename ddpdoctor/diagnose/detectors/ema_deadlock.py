"""DDP504: a torn read of the EMA checkpoint, kept alive by a barrier at exit, hangs the peers."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, sides
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors import checkpoint_race


@detector(precedence=200)
def detect(case: Case) -> Iterator[Finding]:
    """Name the chain: torn read, crash, barrier at exit, peers that wait for ever."""
    if case.deadlock is None:
        return
    at_exit = [each for each in case.deadlock.blocked if each.collective.at_exit]
    held = {each.rank for each in at_exit}
    torn = [each for each in checkpoint_race.torn_reads(case) if each.reader.rank in held]
    if not torn or not any(each.save is not None and "ema" in each.save.keys for each in torn):
        return
    peers = [each for each in case.deadlock.blocked if each.rank not in held]
    barrier = RankPlace(
        ranks=tuple(sorted(held)),
        place=at_exit[0].collective.place,
        doing=f"{at_exit[0].collective.op}() #{at_exit[0].collective.seq} at exit",
        waits_for=at_exit[0].waits_for,
    )
    case.explain(case.deadlock, *(each.raised for each in torn if each.raised))
    yield Finding(
        code="DDP504",
        title="ema-deadlock",
        severity="error",
        certainty="proven",
        ranks=tuple(each.reader.rank for each in torn),
        places=(*checkpoint_race.places(torn), barrier, *sides(peers)),
        cause=f"{checkpoint_race.cause(torn[0])} The barrier in its atexit hook keeps the crashed "
        "rank alive, and the peers wait for it in another collective.",
        cure=Cure(
            text="Save atomically, share the outcome of save and load, and call no collective "
            "at exit."
        ),
        evidence=tuple(checkpoint_race.told(each) for each in torn),
        consequences=case.consequences(),
    )
