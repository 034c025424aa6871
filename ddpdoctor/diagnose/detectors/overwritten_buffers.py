"""DDP321: what a rank has put into a buffer is lost, as DDP overwrites it by that of rank 0.

Proven: at two forward passes or more, the same buffer held different values on the ranks just
before DDP broadcast those of rank 0. A queue of keys, a codebook or running statistics then hold
what rank 0 has seen alone. Batch norms are left out: theirs differ in every training (DDP312).
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.silent_divergence import listed
from ddpdoctor.diagnose.replicas import differing
from ddpdoctor.evidence import RankEvidence, named
from ddpdoctor.evidence.events.layout import Layout
from ddpdoctor.evidence.events.overwritten import Buffers

_ENOUGH = 2


@detector(precedence=432)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each wrapper."""
    if "DDP413" in case.told:
        return  # each buffer got the values of another one
    ranks = [rank for rank in case.evidence.ranks if rank.wrappers]
    passes: dict[tuple[int, int], dict[int, Buffers]] = {}
    for rank in ranks:
        for seen in (each for each in rank.of(Buffers) if each.sent):
            passes.setdefault((seen.wrapper, seen.step), {})[rank.rank] = seen
    lost: dict[int, dict[str, list[int]]] = {}
    lines: dict[int, Buffers] = {}
    for (wrapper, step), of in sorted(passes.items()):
        if len(of) == len(ranks) > 1 and step:
            for name in differing([each.digests for each in of.values()]):
                lost.setdefault(wrapper, {}).setdefault(name, []).append(step)
                lines[wrapper] = next(iter(of.values()))
    numbers = tuple(rank.rank for rank in ranks)
    for wrapper, names in lost.items():
        often = tuple(name for name, steps in names.items() if len(steps) >= _ENOUGH)
        if not often:
            continue
        steps = ", ".join(map(str, names[often[0]]))
        yield Finding(
            code="DDP321",
            title="buffer-overwritten",
            severity="warning",
            certainty="proven",
            ranks=numbers,
            places=(
                *writers(ranks[0], wrapper, often, numbers),
                RankPlace(ranks=numbers, place=lines[wrapper].place, doing="forward"),
                RankPlace(
                    ranks=numbers, place=ranks[0].wrappers[wrapper].place, doing="wraps the model"
                ),
            ),
            cause=f"{listed(often)} held something else on each of {named(numbers)} (after steps "
            f"{steps}), and DDP overwrote it by what rank 0 held.",
            cure=Cure(
                text="Reduce or gather what the ranks put into it, or keep it out of DDP's "
                "broadcast (broadcast_buffers=False)."
            ),
        )


def writers(
    rank: RankEvidence, wrapper: int, names: tuple[str, ...], ranks: tuple[int, ...]
) -> Iterator[RankPlace]:
    """The lines that put something into these buffers, or else register them."""
    for layout in rank.of(Layout):
        known = zip(layout.buffers, layout.writers, layout.makers, strict=False)
        places = {(put or made, put is not None) for name, put, made in known if name in names}
        for place, puts in sorted(places, key=str) if layout.wrapper == wrapper else ():
            if place is not None:
                doing = "puts something into it" if puts else "registers it"
                yield RankPlace(ranks=ranks, place=place, doing=doing)
