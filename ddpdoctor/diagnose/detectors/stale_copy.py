"""DDP506: a copy of the model, made before DDP gave all ranks the weights of rank 0.

Proven: a copy of the module differs between ranks at the first step, while the model does not. Or,
where tensors were copied one by one: on a rank whose weights were replaced they were still what
these had been when the first step came, and have been changed since, to something else than the
model holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.replicas import differing, ended_well, groups
from ddpdoctor.evidence import Place
from ddpdoctor.evidence.events.kept import Kept

_COPIED, _LATER = "copied the model", "wrapped the model, which had been copied"


@detector(precedence=410)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each copy that differs between ranks while the model itself does not."""
    if not ended_well(case):
        return
    told: set[tuple[int, int]] = set()
    for number, replicas in groups(case):
        firsts = [replica.samples[1].parameters for replica in replicas if 1 in replica.samples]
        if len(firsts) < len(replicas) or differing(firsts):
            continue
        copies = [[c for c in r.rank.copies if c.wrapper == number] for r in replicas]
        for index, same in enumerate(zip(*copies, strict=False)):
            names = differing([each.parameters for each in same])
            if names and (number, index) not in told:
                told.add((number, index))
                yield _finding(tuple(r.rank.rank for r in replicas), same[0].places, names, _COPIED)
        kept = [(r.rank.rank, k) for r in replicas for k in r.rank.of(Kept) if k.wrapper == number]
        if kept and not told:
            told.add((number, 0))
            first = kept[0][1]
            places = (first.place,) if first.place is not None else ()
            yield _finding(tuple(dict.fromkeys(r for r, _ in kept)), places, first.names, _LATER)


def _finding(
    ranks: tuple[int, ...], lines: tuple[Place, ...], names: tuple[str, ...], doing: str
) -> Finding:
    return Finding(
        code="DDP506",
        title="ema-before-wrap",
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=tuple(RankPlace(ranks=ranks, place=place, doing=doing) for place in lines),
        cause=f"a copy of the model was made before the wrap, so it differs between ranks "
        f"({len(names)} parameters, {names[0]} first); the model itself does not.",
        cure=Cure(text="Make the copy after the wrap, from model.module."),
    )
