"""DDP601: the graphs of past steps stay alive, and memory grows."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.replicas import groups

_ENOUGH = 3
"""Graphs of earlier sampled steps (1, 2, 4, ...); one or two may be kept for some purpose."""


@detector(precedence=430)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, at the first model whose graphs are kept on every rank."""
    if not case.ended_well:
        return
    for _, replicas in groups(case):
        kept = min(replica.training.graphs_kept for replica in replicas)
        if kept < _ENOUGH:
            continue
        ranks = tuple(replica.rank.rank for replica in replicas)
        places = dict.fromkeys(
            replica.training.places[line]
            for replica in replicas
            for line in ("backward", "forward")
            if line in replica.training.places
        )
        yield Finding(
            code="DDP601",
            title="retained-graph",
            severity="warning",
            certainty="proven",
            ranks=ranks,
            places=tuple(RankPlace(ranks=ranks, place=p, doing="runs") for p in places),
            cause=f"the graphs of {kept} earlier steps that were looked at are all still alive: "
            "something adds up losses or outputs that have one, and memory grows with each step.",
            cure=Cure(text="Add up loss.detach() or loss.item(), not the loss itself."),
        )
        return
