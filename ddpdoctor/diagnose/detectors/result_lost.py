"""DDP214: what was reduced was a copy, whose result nobody has read.

Proven: the ranks gave the call different numbers, and on a rank that was to get the result, the
tensor that it was written to, which shared its memory with nothing, was gone before the code that
called had done anything more. So each rank goes on with its own numbers. Where all give the same,
the call may be there to have ranks wait for each other, or to warm up, and is not told; nor is what
comes before the first step.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Collective, Place, named
from ddpdoctor.evidence.events.lost import Lost


@detector(precedence=403)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each line."""
    lost = {
        (rank.rank, each.group, each.seq): each
        for rank in case.evidence.ranks
        for each in rank.of(Lost)
    }
    calls: dict[tuple[str, int], dict[int, Collective]] = {}
    for rank in case.evidence.ranks if lost else ():
        for call in rank.collectives:
            if call.input:
                calls.setdefault((call.group, call.seq), {})[rank.rank] = call
    lines: dict[Place, dict[int, Collective]] = {}
    for (group, seq), of in calls.items():
        if len({call.input for call in of.values()}) > 1:
            for number, call in of.items():
                has_it = (number, group, seq) not in lost or _is_root(case, number, call)
                if not has_it and call.place is not None:
                    lines.setdefault(call.place, {}).setdefault(number, call)
    for place, ones in lines.items():
        ranks = tuple(sorted(ones))
        call = ones[ranks[0]]
        yield Finding(
            code="DDP214",
            title="metric-not-reduced",
            severity="warning",
            certainty="proven",
            ranks=ranks,
            places=(
                RankPlace(ranks=ranks, place=place, doing=f"{call.op} of a copy"),
                *callers(ranks, call.way, place),
            ),
            cause=f"{named(ranks)} gave {call.op} at {place} a tensor that nobody kept: its result "
            "was gone as the call returned, and each rank goes on with its own numbers.",
            cure=Cure(text=f"Give the copy a name, {call.op} it, and go on with what it holds."),
        )


def _is_root(case: Case, number: int, call: Collective) -> bool:
    """Whether the rank is the one that tells the others; a group numbers its members."""
    for rank in case.evidence.ranks:
        if rank.rank == number and call.op == "broadcast" and call.group in rank.groups:
            members = rank.groups[call.group].ranks
            return call.root is None or members[call.root : call.root + 1] == (number,)
    return call.op == "broadcast"
