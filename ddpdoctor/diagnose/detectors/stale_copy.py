"""DDP506, DDP300: a copy of the model that is not the same on all ranks, while the model is.

DDP506 is one that was made before DDP gave all ranks the weights of rank 0.

Proven: a copy of the module differs between ranks at the first step, while the model does not;
unless it was the same on all ranks by the next look, as one that begins with the model's weights.
Or, where tensors were copied one by one: they differed when the first step came, were changed on
every rank since, and differ still at a step at which the model does not.

Or, by evidence, where the model is a copy of a module which nobody trains: another copy of that one
was the same on all ranks before the first step, and has become something else on each, at steps at
which the model is the same. So it is not brought up to date from the model. DDP has sent what the
first rank held, so that its copy may not have changed; who keeps an average on that rank alone
changes no other.

DDP300, by evidence, is a copy of the wrapped module that was made after the wrap: it was the same
on all ranks, and each has made something else of it, as where each decides by itself when to bring
it up to date.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.replicas import Replica, differing, groups
from ddpdoctor.evidence import Place
from ddpdoctor.evidence.events.kept import Kept

_ENOUGH = 2
"""Steps at which a twin must have been seen to differ."""
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
        written = [[c for c in r.rank.copies if c.wrapper == number] for r in replicas]
        copies = [[each for each in of if not each.again] for of in written]
        for index, same in enumerate(zip(*copies, strict=False)):
            names = differing([each.parameters for each in same])
            later = [e for of in written for e in of if e.again and e.number == same[0].number]
            is_filled = len(later) == len(same) and not differing([e.parameters for e in later])
            if names and not is_filled and (number, index) not in told:
                told.add((number, index))
                yield _finding(tuple(r.rank.rank for r in replicas), same[0].places, names, _COPIED)
        if not told and (names := _kept_apart(number, replicas)):
            told.add((number, 0))
            place = replicas[0].wrapper.place
            lines = (place,) if place is not None else ()
            yield _finding(tuple(r.rank.rank for r in replicas), lines, names, _LATER)
        if not told and (led := _led_apart(number, replicas)):
            told.add((number, 0))
            yield _led_by_each(replicas, led) if led[0].of_model else _of_a_twin(replicas, led)


def _kept_apart(number: int, replicas: tuple[Replica, ...]) -> tuple[str, ...]:
    """The parameters of which all ranks keep copies that have always differed."""
    kept = [
        {k.step: k for k in r.rank.of(Kept) if k.wrapper == number and not k.twin} for r in replicas
    ]
    for step in sorted(set.intersection(*map(set, kept))):
        here = [of[step] for of in kept]
        model = differing([r.samples[step].parameters for r in replicas if step in r.samples])
        common = set.intersection(*(set(each.now) for each in here)) - {*model}
        always = {*differing([each.was for each in here])}
        if names := [n for n in differing([e.now for e in here]) if n in common & always]:
            return tuple(names)
    return ()


def _led_apart(number: int, replicas: tuple[Replica, ...]) -> list[Kept] | None:
    """What was alike in a twin of the model, and has been changed into something else on each."""
    kept = [
        {(k.twin, k.step): k for k in r.rank.of(Kept) if k.wrapper == number and k.twin}
        for r in replicas
    ]
    apart: dict[int, int] = {}
    first, *others = kept
    for twin, step in sorted(set.intersection(*map(set, others)) if others else ()):
        here = [of[twin, step] for of in others]
        own = first.get((twin, step)) or replace(here[0], now=here[0].was)
        here.insert(0, own)
        if here[0].of_model and (twin, step) not in first:
            continue
        model = [r.samples[step].parameters for r in replicas if step in r.samples]
        if len(model) < len(replicas) or differing(model) or differing([e.was for e in here]):
            continue
        if _apart(here):
            apart[twin] = apart.get(twin, 0) + 1
            if apart[twin] >= _ENOUGH:
                return here
    return None


def _apart(here: list[Kept]) -> tuple[str, ...]:
    """The parameters that all ranks have changed, each in its own way."""
    common = set.intersection(*(set(each.now) for each in here))
    return tuple(name for name in differing([each.now for each in here]) if name in common)


def _led_by_each(replicas: tuple[Replica, ...], led: list[Kept]) -> Finding:
    ranks, names = tuple(replica.rank.rank for replica in replicas), _apart(led)
    lines = dict.fromkeys(each.changed_at for each in led if each.changed_at)
    told = ", ".join(f"rank {r} {e.updates} times" for r, e in zip(ranks, led, strict=True))
    return Finding(
        code="DDP300",
        title="averages-apart",
        severity="warning",
        certainty="evidence",
        ranks=ranks,
        places=(
            *(RankPlace(ranks=ranks, place=p, doing="brings the copy up to date") for p in lines),
            RankPlace(ranks=ranks, place=led[0].place, doing=_COPIED),
        ),
        cause=f"a copy of the model was the same on all ranks, and is not any more ({len(names)} "
        f"parameters, {names[0]} first), while the model is: each rank changes it by itself"
        f"{f' ({told})' if len({each.updates for each in led}) > 1 else ''}.",
        cure=Cure(
            text="Decide when to change it by what is the same on every rank, or keep it on one "
            "rank and send it."
        ),
    )


def _of_a_twin(replicas: tuple[Replica, ...], led: list[Kept]) -> Finding:
    ranks, names = tuple(replica.rank.rank for replica in replicas), _apart(led)
    place = led[0].place
    return Finding(
        code="DDP506",
        title="ema-before-wrap",
        severity="warning",
        certainty="evidence",
        ranks=ranks,
        places=(
            RankPlace(ranks=ranks, place=place, doing=_COPIED),
            RankPlace(ranks=ranks, place=replicas[0].wrapper.place, doing="wrapped another copy"),
        ),
        cause=f"a copy of the model was the same on all ranks before the first step, and is not "
        f"any more ({len(names)} parameters, {names[0]} first), while the model is: each rank "
        "brings it up to date from something else, as from what both are copies of.",
        cure=Cure(text="Bring it up to date from model.module, which DDP keeps equal."),
    )


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
