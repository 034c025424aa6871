"""DDP213: the same word has another number on each rank, and the model a row for each number.

The dictionaries were compared as the model was wrapped, or as the dataset that holds one was first
gone over: the same words, in another order, and a replicated parameter with as many rows. That the
rows are those of the words is concluded.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import named
from ddpdoctor.evidence.events.numbered import Numbering


@detector(precedence=446)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, of the first numbering that differs."""
    ranks = [rank for rank in case.evidence.ranks if rank.wrappers]
    if len(ranks) < 2:
        return
    known = {rank.rank: {each.name: each for each in rank.of(Numbering)} for rank in ranks}
    for name in next(iter(known.values())):
        found = {rank: of[name] for rank, of in known.items() if name in of}
        if len(found) == len(known) and _is_apart(found):
            yield _finding(found)
            return


def _is_apart(found: dict[int, Numbering]) -> bool:
    words = {each.words for each in found.values()}
    return len(words) == 1 and len({each.order for each in found.values()}) > 1


def _finding(found: dict[int, Numbering]) -> Finding:
    ranks = tuple(sorted(found))
    first = found[ranks[0]]
    told = "; ".join(f"rank {rank}: {', '.join(found[rank].first)}, ..." for rank in ranks[:4])
    doing = "makes the dataset" if first.dealt else "wrapped the model"
    return Finding(
        code="DDP213",
        title="numbered-apart",
        severity="warning",
        certainty="evidence",
        ranks=ranks,
        places=(RankPlace(ranks=ranks, place=first.place, doing=doing),),
        cause=f"{first.name} gives the same words other numbers on each of {named(ranks)}, and a "
        f"row of {first.rows} stands for each number: the ranks train one row for different words.",
        cure=Cure(text="Number the words in one order on all ranks: enumerate(sorted(...))."),
        evidence=(f"by their numbers, {told}",),
    )
