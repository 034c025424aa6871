"""DDP300: ranks have joined a group, and each trains a copy of one model for itself.

Seen, without a DDP: their weights were alike before the first step and their gradients were not, at
any step that was looked at, the weights are apart in the end, and no rank has ever exchanged a
number with another. That may be meant, as where each has a task of its own: it is a note, which
`annotate` makes a warning where the source has a line that would exchange something.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.by_hand import trained_by_hand
from ddpdoctor.diagnose.detectors.silent_divergence import listed
from ddpdoctor.diagnose.replicas import differing
from ddpdoctor.evidence import RankEvidence, named
from ddpdoctor.evidence.events.stores import KeySet

_ENOUGH = 3


@detector(precedence=413, of_absence=True)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, of the first optimizer of which that is so."""
    for ranks, looks in trained_by_hand(case):
        if len(ranks) < len(case.evidence.ranks) or any(map(_has_talked, ranks)):
            return
        if len(looks) < _ENOUGH or differing([each.parameters for each in looks[0]]):
            continue
        apart = differing([each.parameters for each in looks[-1]])
        if not apart or not all(differing([x.gradients for x in look]) for look in looks):
            continue
        numbers = tuple(rank.rank for rank in ranks)
        yield Finding(
            code="DDP300",
            title="nothing-exchanged",
            severity="info",
            certainty="evidence",
            is_suspicion=True,
            ranks=numbers,
            places=(
                RankPlace(ranks=numbers, place=looks[0][0].place, doing="optimizer.step()"),
                *(
                    RankPlace(ranks=numbers, place=group.place, doing="joins the group")
                    for group in [*ranks[0].groups.values()][:1]
                ),
            ),
            cause=f"{named(numbers)} have exchanged nothing in all of the run: the weights were "
            f"alike before the first step and have parted ({listed(apart)}), as each trains a copy "
            "for itself.",
            cure=Cure(
                text="Average the gradients over the ranks between backward() and step(), or wrap "
                "the model in DistributedDataParallel."
            ),
        )
        return


def _has_talked(rank: RankEvidence) -> bool:
    """Whether it has called anything by which numbers may come to another rank."""
    quiet = ("barrier", "monitored_barrier", "new_group")
    return bool(rank.of(KeySet)) or any(call.op not in quiet for call in rank.collectives)
