"""DDP320: the ranks train one and the same model, as its parameters lie in memory that all share.

Proven: all parameters lie in memory that other processes may see, and the kernel has mapped one
file, at one offset, where the first of every rank is.
A module that is handed to mp.spawn (or to a Process) lies so. DDP reduces the gradients, and then
every rank takes the same step on the same weights: as many steps as there are ranks.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import RankEvidence, named
from ddpdoctor.evidence.events.layout import Layout


@detector(precedence=395)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, at the first wrapper that shares."""
    together: dict[tuple[int, str, str], list[RankEvidence]] = {}
    for rank in case.evidence.ranks:
        for layout in rank.of(Layout):
            if layout.shared and layout.wrapper < len(rank.wrappers):
                key = layout.wrapper, rank.boot, layout.shared
                together.setdefault(key, []).append(rank)
    for (wrapper, *_), ranks in together.items():
        if len(ranks) < 2:
            continue
        numbers = tuple(rank.rank for rank in ranks)
        started = next((rank.started_at for rank in ranks if rank.started_at is not None), None)
        spawn = [RankPlace(ranks=numbers, place=started, doing="hands the module to the ranks")]
        place = ranks[0].wrappers[wrapper].place
        yield Finding(
            code="DDP320",
            title="shared-memory-model",
            severity="error",
            certainty="proven",
            ranks=numbers,
            places=(
                *(spawn if started is not None else []),
                RankPlace(ranks=numbers, place=place, doing="wraps it"),
            ),
            cause=f"the parameters of {named(numbers)} are the same memory: each rank's step "
            "changes the weights of all, while others are reading them.",
            cure=Cure(text="Build the module in each rank, or wrap a copy: copy.deepcopy(model)."),
        )
        return
