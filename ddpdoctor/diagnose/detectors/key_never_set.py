"""DDP400: a rank waits in a store for a key that no rank has set.

By evidence: it may be set yet, by a process that is no rank, too. Two names of one key are what it
mostly is, or a line that a rank did not come to.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import RankEvidence, named
from ddpdoctor.evidence.events.stores import KeyAwaited, KeySet

_LONG, _WORTH_A_WORD = 30.0, 5.0
"""Seconds of waiting, while the job goes on, and where it was ended meanwhile."""
_SHOWN = 4


@detector(precedence=344, of_absence=True)
def detect(case: Case) -> Iterator[Finding]:
    """One finding: the first key, and who waits for it."""
    ranks = case.evidence.ranks
    if case.failures or case.casualties or case.proven or not all(rank.pid for rank in ranks):
        return
    has_ended = case.evidence.asked_to_end or any(rank.fate is not None for rank in ranks)
    least = _WORTH_A_WORD if has_ended else _LONG
    keys = {each.key for rank in ranks for each in rank.of(KeySet)}
    missing: dict[str, list[tuple[RankEvidence, KeyAwaited]]] = {}
    for rank in ranks:
        for awaited in rank.of(KeyAwaited):
            stuck = rank.stuck
            if stuck is None or stuck.place != awaited.place:
                continue  # another thread waits
            if stuck.seen - awaited.time > least:
                for key in [each for each in awaited.keys if each not in keys][:1]:
                    missing.setdefault(key, []).append((rank, awaited))
    for key, waits in [*missing.items()][:1]:
        yield _finding(case, key, waits)


def _finding(case: Case, key: str, waits: list[tuple[RankEvidence, KeyAwaited]]) -> Finding:
    numbers = tuple(rank.rank for rank, _ in waits)
    known = {each.key: (rank, each) for rank in case.evidence.ranks for each in rank.of(KeySet)}
    told = ", ".join(map(repr, [*known][-_SHOWN:])) or "none"
    seconds = max(rank.stuck.seen - each.time for rank, each in waits if rank.stuck is not None)
    return Finding(
        code="DDP400",
        title="key-never-set",
        severity="warning" if seconds > _LONG else "info",
        certainty="evidence",
        may_pass=True,
        ranks=numbers,
        places=(
            *(
                RankPlace(ranks=(rank.rank,), place=each.place, doing=f"waits for {key!r}")
                for rank, each in waits
            ),
            *(
                RankPlace(ranks=(rank.rank,), place=each.place, doing=f"sets {each.key!r}")
                for rank, each in [*known.values()][-_SHOWN:]
            ),
        ),
        cause=f"{named(numbers)} wait{'s' if len(numbers) == 1 else ''} in a store for the key "
        f"{key!r}, for {seconds:.0f} s by now, and no rank has set it. Set were: {told}.",
        cure=Cure(text="Set that key, by the same name, on a rank that does not wait for it."),
    )
