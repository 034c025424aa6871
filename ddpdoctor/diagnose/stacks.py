"""What the stacks of ranks allow, and nothing else is known: evidence, never proof."""

from __future__ import annotations

from collections.abc import Sequence

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import way
from ddpdoctor.evidence import Collective, Evidence, Place, RankEvidence, named

_C10D = "torch/distributed/distributed_c10d.py"
_DDP = "torch/nn/parallel/distributed.py"
_ONE_ORDER = "Every rank must call the same collectives in the same order."


def awaited(frames: Sequence[Place]) -> Collective | None:
    """The communication that a stack stands in, or None: the outermost call into torch's own."""
    for frame in frames:
        if frame.file.endswith(_C10D):
            return Collective("0", 0, frame.function.rpartition(".")[2], 0.0)
    if any(frame.function.endswith("_engine_run_backward") for frame in frames[-2:]):
        return Collective("0", 0, "all_reduce (backward)", 0.0)
    if frames and frames[-1].file.endswith(_DDP):
        inside = "forward" if any("forward" in frame.function for frame in frames) else "DDP()"
        return Collective("0", 0, f"broadcast ({inside})", 0.0)
    return None


def judge_stacks(evidence: Evidence) -> list[Finding]:
    """At most one finding: who stands elsewhere than those that wait."""
    ranks = [rank for rank in evidence.ranks if rank.pid]
    waiting = [rank for rank in ranks if rank.stuck is not None and rank.stuck.waiting]
    others = [rank for rank in ranks if rank not in waiting]
    if not waiting:
        return []
    if others:
        return [_elsewhere(waiting, others)]
    sides = _sides(waiting)
    if len(sides) > 1:
        return [_apart(sides)]
    return [_together(sides[0], evidence)] if len(ranks) > 1 else []


def _elsewhere(waiting: list[RankEvidence], others: list[RankEvidence]) -> Finding:
    """Some wait, and some do something else: which may yet end, if it moves."""
    still = all(rank.stuck is not None for rank in others)
    ranks = tuple(rank.rank for rank in others)
    culprits = _sides(others, doing="stands here" if still else "is busy here")
    sides = _sides(waiting, waits_for=ranks)
    whereabouts = "; ".join(
        f"{named(side.ranks)} {'stand' if still else 'work'}{'s' if len(side.ranks) == 1 else ''}"
        f"{f' at {side.place}' if side.place else ''}"
        for side in culprits
    )
    return Finding(
        code="DDP400",
        title="missing-call" if still else "stall",
        severity="error" if still else "warning",
        certainty="evidence",
        ranks=ranks,
        places=(*culprits, *sides),
        cause=f"{named(rank.rank for rank in waiting)} waited during both looks; {whereabouts}.",
        cure=Cure(
            text="See what keeps it there, or why it does not come to the call of the others."
            if still
            else "Look again in a minute: if it still works there, it is slow or in a loop that "
            "does not end."
        ),
    )


def _apart(sides: list[RankPlace]) -> Finding:
    tie = len(sides[0].ranks) == len(sides[-1].ranks)
    minority = () if tie else tuple(r for side in sides[:-1] for r in side.ranks)
    everybody = {rank for side in sides for rank in side.ranks}
    ways = "; ".join(
        f"{named(side.ranks)} in {side.doing}{f' at {side.place}' if side.place else ''}"
        for side in sides
    )
    undecidable = " Which side is wrong, the stacks do not tell." if tie else ""
    return Finding(
        code="DDP400",
        title="deadlock",
        severity="error",
        certainty="evidence",
        ranks=tuple(sorted(minority)),
        places=tuple(
            side.model_copy(update={"waits_for": tuple(sorted(everybody - {*side.ranks}))})
            for side in sides
        ),
        cause=f"the ranks wait in different calls: {ways}.{undecidable}",
        cure=Cure(text=_ONE_ORDER),
    )


def _together(side: RankPlace, evidence: Evidence) -> Finding:
    absent = tuple(rank.rank for rank in evidence.ranks if not rank.pid)
    if absent:
        cause = f"all ranks of this machine wait in {side.doing} at {side.place}: the one that "
        cause += f"they wait for is among {named(absent)}, elsewhere."
        cure = "Attach on the other machines too."
    else:
        cause = f"all ranks wait in {side.doing} at {side.place}: by their lines, none differs."
        cure = (
            "If it does not go on, their numbers of calls differ, or sizes do, or the network "
            "fails: ddpdoctor run -- COMMAND counts the calls."
        )
    return Finding(
        code="DDP400",
        title="all-wait-together",
        severity="warning",
        certainty="evidence",
        ranks=(),
        places=(side.model_copy(update={"waits_for": absent}),),
        cause=cause,
        cure=Cure(text=cure),
    )


def _sides(
    ranks: list[RankEvidence], *, doing: str = "", waits_for: tuple[int, ...] = ()
) -> list[RankPlace]:
    """The ranks, together where they stand at the same line in the same call; fewest first."""
    together: dict[tuple[str, Place | None], list[RankEvidence]] = {}
    for rank in ranks:
        stuck = rank.stuck
        call = stuck.waiting[0].op if stuck is not None and stuck.waiting else doing
        together.setdefault((call, stuck.place if stuck is not None else None), []).append(rank)
    return [
        RankPlace(
            ranks=tuple(rank.rank for rank in side),
            place=place,
            doing=call,
            waits_for=waits_for,
            stack=way(side[0].stuck) if side[0].stuck is not None else (),
        )
        for (call, place), side in sorted(together.items(), key=lambda item: len(item[1]))
    ]
