"""DDP506: a copy of the model, made before DDP gave all ranks the weights of rank 0.

Proven: a copy of the module differs between ranks at the first step, while the model does not. Or,
where tensors were copied one by one: they differed when the first step came, were changed on every
rank since, and differ still at a step at which the model does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.replicas import Replica, differing, groups
from ddpdoctor.evidence import Place
from ddpdoctor.evidence.events.kept import Kept

_COPIED, _LATER = "copied the model", "wrapped the model, which had been copied"


@detector(precedence=410)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each copy that differs between ranks while the model itself does not."""
    if not case.ended_well:
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
        if not told and (names := _kept_apart(number, replicas)):
            told.add((number, 0))
            place = replicas[0].wrapper.place
            lines = (place,) if place is not None else ()
            yield _finding(tuple(r.rank.rank for r in replicas), lines, names, _LATER)


def _kept_apart(number: int, replicas: tuple[Replica, ...]) -> tuple[str, ...]:
    """The parameters of which all ranks keep copies that have always differed."""
    kept = [{k.step: k for k in r.rank.of(Kept) if k.wrapper == number} for r in replicas]
    for step in sorted(set.intersection(*map(set, kept))):
        here = [of[step] for of in kept]
        model = differing([r.samples[step].parameters for r in replicas if step in r.samples])
        common = set.intersection(*(set(each.now) for each in here)) - {*model}
        always = {*differing([each.was for each in here])}
        if names := [n for n in differing([e.now for e in here]) if n in common & always]:
            return tuple(names)
    return ()


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
