"""DDP306: gradients clipped before they are what the optimizer will see."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.replicas import groups


@detector(precedence=415)
def detect(case: Case) -> Iterator[Finding]:
    """Clipping under no_sync, or of gradients that are still scaled."""
    if not case.ended_well:
        return
    told: set[int] = set()
    for number, replicas in groups(case):
        if any(window.endswith("n") for r in replicas for window in r.training.windows):
            continue  # then it is the step that comes too early, and clipping just before it
        early = [r for r in replicas if r.training.clipped_early]
        scaled = [r for r in replicas if r.training.clipped_scaled]
        hit = early or scaled
        if not hit or number in told or any(r.training.kept_out for r in replicas):
            continue
        told.add(number)
        ranks = tuple(r.rank.rank for r in hit)
        if early:
            cause = (
                "gradients are clipped after micro-batches that no_sync() keeps local: each rank "
                "clips its own part, and the sum is reduced unclipped."
            )
            cure = "Clip once, after the micro-batch that synchronises and before the step."
        else:
            cause = (
                "gradients are clipped while the GradScaler's factor is still on them: the limit "
                "is thousands of times too small."
            )
            cure = "Call scaler.unscale_(optimizer) before clipping."
        yield Finding(
            code="DDP306",
            title="clip-before-sync",
            severity="error",
            certainty="proven",
            ranks=ranks,
            places=(
                RankPlace(
                    ranks=ranks,
                    place=hit[0].training.places.get("clip"),
                    doing="clip_grad_norm_()",
                ),
            ),
            cause=cause,
            cure=Cure(text=cure),
        )
