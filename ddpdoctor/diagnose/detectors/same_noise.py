"""DDP205: every rank draws the same dropout masks."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.replicas import Replica, groups

_ENOUGH = 3
"""Steps at which the random states must have been seen equal."""


@detector(precedence=420)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, at the first model with dropout."""
    if not case.ended_well:
        return
    for _, replicas in groups(case):
        if steps := _same_states(replicas):
            ranks = tuple(replica.rank.rank for replica in replicas)
            seeds = [(rank.rank.rank, rank.rank.seeds[-1]) for rank in replicas if rank.rank.seeds]
            yield Finding(
                code="DDP205",
                title="same-noise-everywhere",
                severity="info",
                certainty="proven",
                ranks=ranks,
                places=(
                    *(
                        RankPlace(ranks=(rank,), place=seed.place, doing=f"seed {seed.value}")
                        for rank, seed in seeds
                    ),
                    RankPlace(
                        ranks=ranks, place=replicas[0].wrapper.place, doing="wrapped the model"
                    ),
                ),
                cause="all ranks draw the same dropout masks: their random states were equal "
                f"before steps {', '.join(map(str, steps))}.",
                cure=Cure(
                    text="Once the model is built, seed each rank differently: "
                    "torch.manual_seed(seed + rank)."
                ),
            )
            return


def _same_states(replicas: tuple[Replica, ...]) -> list[int]:
    """The steps before which all ranks had one state, if there are enough and the state moves."""
    steps, states = [], set()
    for step in sorted(set.intersection(*(set(replica.samples) for replica in replicas))):
        noise = {replica.samples[step].noise for replica in replicas}
        if noise == {""}:
            continue
        if len(noise) > 1:
            return []
        steps.append(step)
        states |= noise
    return steps if len(states) == len(steps) >= _ENOUGH else []
