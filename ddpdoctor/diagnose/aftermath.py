"""What records of a job that is over allow, where the detectors of a watched job find nothing.

A dump or a log tells what ranks had issued when they gave up; of a rank that is outside of every
collective it tells nothing. So the rank that the others wait for is named by evidence, not proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose import diagnose
from ddpdoctor.diagnose.case import Case, is_casualty, sides
from ddpdoctor.diagnose.detectors import left_without_words
from ddpdoctor.diagnose.waiting import Blocked, normal_op
from ddpdoctor.evidence import Collective, Evidence, Place, RankEvidence, named


def judge_record(evidence: Evidence) -> list[Finding]:
    """What the detectors find; if that is no error, who is missing from what others await."""
    found = diagnose(evidence)
    if any(finding.severity == "error" for finding in found):
        return found
    return [*_missing(evidence), *found]


def judge_log(evidence: Evidence) -> list[Finding]:
    """The same, of a text log: nothing that it says is more than evidence."""
    waiting = [rank for rank in evidence.ranks if rank.stuck is not None and rank.stuck.waiting]
    failed = [rank for rank in evidence.ranks if _has_failed(rank)]
    hence: tuple[str, ...] = ()
    if failed:  # those that waited, waited for one that had failed
        hence = tuple(map(_gave_up, waiting))
        ranks = [replace(rank, stuck=None) for rank in evidence.ranks]
        evidence = Evidence(evidence.world_size, ranks)
    speechless = [rank for rank in failed if left_without_words.exit_code(rank)]
    if speechless and len(speechless) == len(failed):
        case = Case(evidence)
        found = [left_without_words.finding(speechless, [*case.raised, *case.casualties])]
    else:
        found = judge_record(evidence)
    return [_weakened(each, hence if n == 0 else ()) for n, each in enumerate(found)]


def _weakened(finding: Finding, consequences: tuple[str, ...]) -> Finding:
    """Of evidence only; and without saying when it was, which a log does not tell."""
    changes: dict[str, object] = {
        "certainty": "evidence",
        "consequences": (*finding.consequences, *consequences),
    }
    if finding.title == "exception-before-init":
        changes |= {"code": "DDP400", "title": "exception"}
    return finding.model_copy(update=changes)


def _has_failed(rank: RankEvidence) -> bool:
    if rank.exceptions:
        return not is_casualty(rank.exceptions[-1])
    return rank.fate is not None and rank.fate.exit_code != 0


def _gave_up(rank: RankEvidence) -> str:
    assert rank.stuck is not None
    first = rank.stuck.waiting[0]
    seconds = rank.groups[first.group].timeout if first.group in rank.groups else 0.0
    after = f", until its timeout of {seconds:.0f} s" if seconds else ""
    return f"rank {rank.rank} then waited in {_name(first)}{after}"


def _missing(evidence: Evidence) -> Iterator[Finding]:
    """One finding: the earliest collective that somebody waits in, and who never came to it."""
    waiting = [
        (collective, rank)
        for rank in evidence.ranks
        if rank.stuck is not None
        for collective in rank.stuck.waiting[:1]
        if collective.peer is None
    ]
    if not waiting:
        return
    first, _ = min(waiting, key=lambda each: (each[0].group != "0", each[0].group, each[0].seq))
    same = [
        Blocked(rank.rank, collective, rank.stuck, ())
        for collective, rank in waiting
        if (collective.group, collective.seq) == (first.group, first.seq) and rank.stuck is not None
    ]
    here = {each.rank for each in same}
    group = evidence.ranks[same[0].rank].groups.get(first.group)
    members = group.ranks if group is not None else ()
    if not members and first.group != "0":
        yield _in_a_group(first, same)
        return
    members = members or tuple(range(evidence.world_size))
    absent = [
        evidence.ranks[m]
        for m in members
        if m < len(evidence.ranks)
        and m not in here
        and (_issued(evidence.ranks[m], first) < first.seq or not first.seq)
    ]
    if absent:
        yield _absent(first, same, absent)
    elif len({normal_op(each.collective.op) for each in same}) > 1:
        yield _mismatch(first, same)
    else:
        yield _all_came(first, same)


def _issued(rank: RankEvidence, awaited: Collective) -> int:
    """How many collectives of the group it had issued, as far as is known."""
    known = [c.seq for c in rank.collectives if c.group == awaited.group and c.peer is None]
    if rank.stuck is not None:
        known.append(rank.stuck.issued.get(awaited.group, 0))
    return max(known, default=0)


def _absent(first: Collective, same: list[Blocked], absent: list[RankEvidence]) -> Finding:
    ranks = tuple(rank.rank for rank in absent)
    name = _name(first)
    known = [rank for rank in absent if rank.collectives or rank.stuck is not None]
    unknown = tuple(rank.rank for rank in absent if rank not in known)
    lasts = [f"the last that rank {r.rank} issued was {_last(r, first)}" for r in known[:4]]
    if unknown:
        lasts.append(f"of {named(unknown)} there is no record")
    return Finding(
        code="DDP400",
        title="missing-call",
        severity="error",
        certainty="evidence",
        ranks=ranks if known or len(absent) < len(same) else (),
        places=(
            *(RankPlace(ranks=(r.rank,), place=_place(r, first), doing="seen last") for r in known),
            *_sides(same, ranks),
        ),
        cause=f"{named(tuple(each.rank for each in same))} waited in {name}, and "
        f"{named(ranks)} never came to it: {'; '.join(lasts)}.",
        cure=Cure(
            text=f"Look at what {named(ranks)} did instead: an exception, a loop that ended "
            "early, or a call under a condition."
        ),
    )


def _mismatch(first: Collective, same: list[Blocked]) -> Finding:
    places = tuple(sides(same))
    names = " and ".join(sorted({f"{place.doing} on {named(place.ranks)}" for place in places}))
    few, many = places[0].ranks, places[-1].ranks
    return Finding(
        code="DDP402",
        title="collective-order-mismatch",
        severity="error",
        certainty="evidence",
        ranks=few if len(few) < len(many) else (),
        places=places,
        cause=f"as number {first.seq} of their group, the ranks called different collectives: "
        f"{names}.",
        cure=Cure(text="Every rank must call the same collectives in the same order."),
    )


def _in_a_group(first: Collective, same: list[Blocked]) -> Finding:
    ranks = tuple(each.rank for each in same)
    return Finding(
        code="DDP400",
        title="timeout-in-a-group",
        severity="error",
        certainty="evidence",
        ranks=(),
        places=_sides(same, ()),
        cause=f"{named(ranks)} waited in {_name(first)} of group {first.group} until the timeout; "
        "nothing tells who else belongs to that group.",
        cure=Cure(text="Look for what the other members of the group did instead."),
    )


def _all_came(first: Collective, same: list[Blocked]) -> Finding:
    ranks = tuple(each.rank for each in same)
    return Finding(
        code="DDP400",
        title="collective-never-completed",
        severity="error",
        certainty="evidence",
        ranks=(),
        places=_sides(same, ()),
        cause=f"{named(ranks)} all came to {_name(first)}, and it never "
        "completed: no call is missing there. Either the sizes differ, or the network or a device "
        "failed, or a rank was so late that the others had given up.",
        cure=Cure(
            text="Compare the sizes on all ranks, then the links (ddpdoctor env); a rank that is "
            "late for a good reason needs init_process_group(timeout=...)."
        ),
    )


def _sides(same: list[Blocked], absent: tuple[int, ...]) -> tuple[RankPlace, ...]:
    return tuple(
        side.model_copy(update={"waits_for": absent, "doing": side.doing.removesuffix(" #0")})
        for side in sides(same)
    )


def _name(collective: Collective) -> str:
    """As in all_reduce #413; of some, the number is not known."""
    number = f" #{collective.seq}" if collective.seq else ""
    return f"{normal_op(collective.op)}{number}"


def _last(rank: RankEvidence, awaited: Collective) -> str:
    theirs = [c for c in rank.collectives if c.group == awaited.group and c.peer is None]
    if not theirs:
        issued = _issued(rank, awaited)
        return f"#{issued}" if issued else "none"
    last = theirs[-1]
    where = f" at {last.place}" if last.place else ""
    return f"{normal_op(last.op)} #{last.seq}{where}"


def _place(rank: RankEvidence, awaited: Collective) -> Place | None:
    theirs = (c.place for c in reversed(rank.collectives) if c.group == awaited.group and c.place)
    return next(theirs, None)
