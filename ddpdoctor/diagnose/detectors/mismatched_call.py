"""DDP403: the ranks called the same collective with different sizes, dtypes, roots or reduce ops.

gloo may crash, hang, or return wrong numbers with exit code 0; the comparison finds all three.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.histories import Mismatch, mismatches
from ddpdoctor.evidence import Collective, Place, named


@detector(precedence=295)
def detect(case: Case) -> Iterator[Finding]:
    """Name the minority among the ranks that disagree; on a tie nobody."""
    if "DDP422" in case.told:
        return
    for mismatch in mismatches(case.evidence.ranks):
        case.explain(
            *(each for each in case.raised if _in_collective(each)),
            *(each for each in case.died if each.rank.rank in mismatch.calls),
            *([case.deadlock] if case.deadlock else []),
        )
        yield _finding(case, mismatch)


def _have_met(case: Case, mismatch: Mismatch) -> bool:
    """Whether the ranks have called from these same lines together before."""
    together: Counter[int] = Counter()
    for rank in case.evidence.ranks:
        call = mismatch.calls.get(rank.rank)
        if call is not None:
            line = call.group, call.place
            own = (c for c in rank.collectives if c.peer is None and c.seq < call.seq)
            together.update(each.seq for each in own if (each.group, each.place) == line)
    return len(mismatch.calls) in together.values()


def _are_out_of_step(case: Case, mismatch: Mismatch) -> bool:
    """Whether each rank has called from its line with all of the sizes that met."""
    met = {call.shapes for call in mismatch.calls.values()}
    for rank in case.evidence.ranks:
        call = mismatch.calls.get(rank.rank)
        if call is not None:
            line = call.group, call.place
            own = {each.shapes for each in rank.collectives if (each.group, each.place) == line}
            if not met <= own:
                return False
    return True


def _in_collective(raised: Raised) -> bool:
    return "/torch/distributed/" in raised.exception.frames[-1].file


def _finding(case: Case, mismatch: Mismatch) -> Finding:
    forms: dict[tuple[str, Place | None, tuple[Place, ...]], list[int]] = {}
    for rank, call in sorted(mismatch.calls.items()):
        forms.setdefault((_told(call, mismatch.what), call.place, call.way), []).append(rank)
    ordered = sorted(forms.items(), key=lambda item: len(item[1]))
    tie = len(ordered[0][1]) == len(ordered[-1][1])
    call = next(iter(mismatch.calls.values()))
    return Finding(
        code="DDP403",
        title="collective-shape-mismatch",
        severity="error",
        certainty="proven",
        ranks=() if tie else tuple(r for _, ranks in ordered[:-1] for r in ranks),
        places=tuple(
            RankPlace(
                ranks=tuple(ranks),
                place=place,
                doing=f"{call.op} #{call.seq} with {told}",
                stack=way,
            )
            for (told, place, way), ranks in ordered
        ),
        cause=f"the ranks disagree on the {mismatch.what} of {call.op} #{call.seq}: "
        + "; ".join(f"{named(ranks)} with {told}" for (told, *_), ranks in ordered)
        + ".",
        cure=Cure(text=_cure(case, mismatch)),
        consequences=case.consequences(),
    )


def _told(call: Collective, what: str) -> str:
    facts = {
        "roots": f"root {call.root}",
        "reduce ops": f"{call.reduce_op}",
        "dtypes": call.dtype,
        "sizes": ", ".join(str(list(shape)) for shape in call.shapes),
    }
    return ", ".join(told for name, told in facts.items() if name in what)


def _cure(case: Case, mismatch: Mismatch) -> str:
    """What to do: two lines that have never met are two calls, and it is their order that is wrong.

    Unless they are the two sides of one condition, which is for the reader to see.
    """
    what = mismatch.what
    places = [*dict.fromkeys(call.place for call in mismatch.calls.values() if call.place)]
    if len(places) > 1 and not _have_met(case, mismatch):
        lines = " and ".join(f"{PurePath(place.file).name}:{place.line}" for place in places[:3])
        return (
            f"These are two calls that meet by their number alone ({lines}): have all ranks make "
            "the same calls in the same order; look before it for one that a rank leaves out or "
            f"makes once more. If they are meant for each other, give them the same {what}."
        )
    if "sizes" in what and _are_out_of_step(case, mismatch):
        return (
            "Each rank has called this line with each of these sizes: they go through the same "
            "tensors, and are out of step. Have all ranks make the same calls in the same order, "
            "and none leave one out or make it once more. If each has tensors of its own, agree on "
            "the sizes first (gather them), and pad to the largest."
        )
    if "sizes" in what:
        return "Agree on the sizes first (gather them), and pad to the largest."
    return f"Pass the same {what} on every rank."
