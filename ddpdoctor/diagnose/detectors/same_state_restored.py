"""DDP205: ranks that were seeded apart are all given one random state.

Proven: before the call each rank drew by a seed of its own, after it all generators are in one
state, equal to the bit, and nothing that was set later has brought them apart again. So from there
on all draw the same: a checkpoint holds the state of one rank, or the others' are not looked at.
Who had one seed on all ranks before wants them alike, and who sets a state for a while, and then
his own again, has parted them: neither is told. Nor is who seeds for one sample, by its number, and
gives back the state he came with: that was alike before.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.replicas import is_a_replica
from ddpdoctor.evidence import named
from ddpdoctor.evidence.events.restored_chance import RandomState


@detector(precedence=418)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, at the first of the calls that made all alike."""
    ranks = case.evidence.ranks
    if len(ranks) < 2 or not all(map(is_a_replica, ranks)):
        return
    states = [rank.of(RandomState) for rank in ranks]
    if len({len(of) for of in states}) > 1:
        return
    calls = list(zip(*states, strict=True))
    alike = [len({c.now for c in call}) == 1 and bool(call[0].now) for call in calls]
    for number, call in enumerate(calls):
        if len({c.before for c in call}) < len(ranks) or not all(alike[number:]):
            continue
        if all(c.given_back for c in call):
            continue
        numbers, first = tuple(rank.rank for rank in ranks), call[0]
        seeds = [(rank.rank, each) for rank in ranks for each in rank.seeds[-1:]]
        yield Finding(
            code="DDP205",
            title="same-noise-everywhere",
            severity="warning",
            certainty="proven",
            ranks=numbers,
            places=(
                RankPlace(ranks=numbers, place=first.place, doing="sets one random state"),
                *callers(numbers, first.way, first.place),
                *(RankPlace(ranks=(n,), place=s.place, doing=f"seed {s.value}") for n, s in seeds),
            ),
            cause=f"{named(numbers)} had seeds of their own, and were all given the same random "
            f"state at {first.place}: from there on they draw the same numbers.",
            cure=Cure(
                text="Save the random state of each rank, and give each its own back "
                "(states[dist.get_rank()])."
            ),
        )
        return
