"""DDP204: the ranks shuffle by different seeds, so their shards overlap."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding
from ddpdoctor.diagnose import loaders
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Sampler


@detector(precedence=435)
def detect(case: Case) -> Iterator[Finding]:
    """Name the samplers, and what their seeds mean for the set."""
    for kin in loaders.training(case.evidence):
        samplers = [loader.sampler for loader in kin.values() if loader.sampler is not None]
        if len(samplers) < len(kin) or not _deal_one_set(samplers):
            continue
        if len({s.seed for s in samplers}) == 1 or _are_other_sets(kin):
            continue
        seeds = ", ".join(str(s.seed) for s in samplers[:8]) + (", …" if len(samplers) > 8 else "")
        unseen = (1 - 1 / len(samplers)) ** len(samplers)
        yield Finding(
            code="DDP204",
            title="sampler-seed-per-rank",
            severity="error",
            certainty="proven",
            ranks=tuple(sorted(kin)),
            places=loaders.places(kin, "built the loader", sampler="built the sampler"),
            cause="the samplers of the ranks have different seeds, so each deals from a shuffle of "
            f"its own: shards overlap, and an epoch leaves about {unseen:.0%} of the set out.",
            cure=Cure(text="Give the sampler one seed on all ranks; keep rank seeds for noise."),
            evidence=(f"seeds by rank: {seeds}",),
        )


def _deal_one_set(samplers: list[Sampler]) -> bool:
    first = samplers[0]
    return (
        all(s.shuffle and s.length == first.length for s in samplers)
        and all(s.num_replicas == len(samplers) for s in samplers)
        and len({s.rank for s in samplers}) == len(samplers)
    )


def _are_other_sets(kin: loaders.Kin) -> bool:
    return len({each.identity for each in kin.values() if each.identity}) > 1
