"""DDP312: a buffer that DDP is told to leave as it is holds something else on each rank.

That is seen, and may be meant: a queue or a stream's state is each rank's own. It is told where
lint reads that it is a running statistic of the rank's own data (`annotate`): the ranks share the
weights, and each uses them with another statistic. So it is with numbers that a module holds as
plain attributes, of which DDP knows nothing, where each rank changes its own from look to look.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose import shuffles
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.overwritten_buffers import writers
from ddpdoctor.diagnose.detectors.silent_divergence import listed
from ddpdoctor.diagnose.replicas import differing
from ddpdoctor.evidence import RankEvidence, named
from ddpdoctor.evidence.events.attributes import Attributes
from ddpdoctor.evidence.events.overwritten import Buffers

_ENOUGH = 3


@detector(precedence=473)
def plain(case: Case) -> Iterator[Finding]:
    """One finding for each wrapper whose modules hold such numbers."""
    ranks = [rank for rank in case.evidence.ranks if rank.wrappers]
    if len(ranks) < 2 or not case.ended_well:
        return
    numbers = tuple(rank.rank for rank in ranks)
    for looks in _looks(ranks):
        names = [
            name for name in (looks[-1][0].digests if looks else ()) if _is_own(looks[1:], name)
        ]
        if names:
            held = zip(looks[-1][0].digests, looks[-1][0].places, strict=False)
            places = dict.fromkeys(place for name, place in held if name in names)
            yield Finding(
                code="DDP312",
                title="own-attributes",
                severity="info",
                certainty="evidence",
                is_suspicion=True,
                ranks=numbers,
                places=tuple(
                    RankPlace(ranks=numbers, place=each, doing="is computed with them")
                    for each in places
                ),
                cause=f"{listed(tuple(names))} held something else on each of {named(numbers)} "
                f"(at {len(looks) - 1} looks), and by the source they are running statistics of "
                "the rank's own data: each rank trains the shared weights with its own.",
                cure=Cure(text="Reduce what goes into them over the ranks before they take it in."),
            )


@detector(precedence=419)
def drawn(case: Case) -> Iterator[Finding]:
    """DDP300: tensors that modules hold as plain attributes, and that each rank has drawn itself.

    They never change, and each rank had seeded itself apart before anything else: as random
    frequencies, or a projection, by which the ranks compute different functions of shared weights.
    """
    ranks = [rank for rank in case.evidence.ranks if rank.wrappers]
    if len(ranks) < 2 or not case.ended_well or not (seeds := shuffles.seeded_apart(ranks)):
        return
    numbers = tuple(rank.rank for rank in ranks)
    for looks in _looks(ranks):
        names = [name for name in (looks[0][0].digests if looks else ()) if _is_drawn(looks, name)]
        if names:
            held = zip(looks[0][0].digests, looks[0][0].places, strict=False)
            places = dict.fromkeys(place for name, place in held if name in names)
            yield Finding(
                code="DDP300",
                title="silent-divergence",
                severity="warning",
                certainty="evidence",
                ranks=numbers,
                places=(
                    *(
                        RankPlace(ranks=numbers, place=each, doing="is computed with it")
                        for each in places
                    ),
                    *seeds,
                ),
                cause=f"{listed(tuple(names))} never changes, and is another one on each of "
                f"{named(numbers)}, which seeded themselves apart: DDP sends parameters and "
                "buffers alone, so the ranks train shared weights of different functions.",
                cure=Cure(
                    text="Register it as a buffer, which DDP sends, or draw it from one seed."
                ),
            )
            return


def _looks(ranks: list[RankEvidence]) -> Iterator[list[list[Attributes]]]:
    """Of each wrapper, what its modules held on each rank before the steps all have looked at."""
    for wrapper in sorted({seen.wrapper for rank in ranks for seen in rank.of(Attributes)}):
        of_ranks = [
            {each.step: each for each in rank.of(Attributes) if each.wrapper == wrapper}
            for rank in ranks
        ]
        steps = sorted(set.intersection(*map(set, of_ranks)))
        yield [[of[step] for of in of_ranks] for step in steps]


def _is_drawn(looks: list[list[Attributes]], name: str) -> bool:
    """Whether these are several numbers, others on each rank, and the same at each look."""
    held = [[each.digests.get(name, "") for each in look] for look in looks]
    return (
        len(held) >= _ENOUGH
        and all(row == held[0] for row in held)
        and len({*held[0]}) == len(held[0])
        and all(" " in each for each in held[0])
    )


def _is_own(looks: list[list[Attributes]], name: str) -> bool:
    """Whether it is another number on each rank at each look, and at each look another one."""
    held = [[each.digests.get(name, "") for each in look] for look in looks]
    apart = all(len({*row}) == len(row) and "" not in row for row in held)
    return (
        apart
        and len(held) >= _ENOUGH
        and all(len({*of_rank}) == len(held) for of_rank in zip(*held, strict=True))
    )


@detector(precedence=433)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each wrapper."""
    ranks = [rank for rank in case.evidence.ranks if rank.wrappers]
    numbers = tuple(rank.rank for rank in ranks)
    for wrapper in sorted({seen.wrapper for rank in ranks for seen in rank.of(Buffers)}):
        apart = _apart(ranks, wrapper)
        if apart is None:
            continue
        names, last = apart
        yield Finding(
            code="DDP312",
            title="own-statistics",
            severity="info",
            certainty="evidence",
            is_suspicion=True,
            ranks=numbers,
            places=(
                *writers(ranks[0], wrapper, names, numbers),
                RankPlace(ranks=numbers, place=last.place, doing="forward"),
            ),
            cause=f"{listed(names)} held something else on each of {named(numbers)} (after step "
            f"{last.step}), and by the source they are running statistics of the rank's own data: "
            "each rank trains the shared weights with its own.",
            cure=Cure(text="Reduce what goes into them over the ranks before they take it in."),
        )


def _apart(ranks: list[RankEvidence], wrapper: int) -> tuple[tuple[str, ...], Buffers] | None:
    """The buffers that differ at the latest pass that all ranks have seen, and that pass."""
    seen = [
        {each.step: each for each in rank.of(Buffers) if each.wrapper == wrapper and not each.sent}
        for rank in ranks
    ]
    steps = set.intersection(*map(set, seen)) - {0} if len(seen) > 1 else set()
    if not steps:
        return None
    last = [of[max(steps)] for of in seen]
    names = tuple(differing([each.digests for each in last]))
    return (names, last[0]) if names else None
