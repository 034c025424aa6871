"""DDP402 as an exception: what a rank took for the answer to its call was sent for another.

A broadcast of gloo that is shorter than what is awaited raises nothing: the rank goes on with bytes
that mean something else, and fails where it reads them. That it was out of step is certain where a
line was called as often on two ranks, and the last time under different numbers of the group. The
call that one has made more is one of DDP's: the buffers that it sends as an evaluation begins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Collective, RankEvidence, named
from ddpdoctor.evidence.events.sent import Sent

_ALL_KNOWN = 4096
"""Of a rank that has made more calls than this, the first may be forgotten."""


@detector(precedence=313)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, of the first exception of a rank that was out of step with another."""
    for raised in sorted(case.raised, key=lambda each: (each.exception.time, each.rank.rank)):
        call = _last_call(raised)
        for other in case.evidence.ranks if call is not None else ():
            extra = _extra(raised.rank, other, call) if call is not None else None
            if call is not None and extra is not None:
                yield _finding(case, raised, call, *extra)
                return


def _last_call(raised: Raised) -> Collective | None:
    """What Python called last before it, on a group."""
    calls = raised.rank.collectives
    if not calls or len(calls) > _ALL_KNOWN or calls[-1].peer is not None:
        return None
    return calls[-1] if calls[-1].begun < raised.exception.time else None


def _extra(
    rank: RankEvidence, other: RankEvidence, call: Collective
) -> tuple[RankEvidence, Sent] | None:
    """What one of the two has sent in an evaluation and the other has not, if they are apart."""
    if other is rank or len(other.collectives) > _ALL_KNOWN:
        return None
    mine, theirs = _from_there(rank, call), _from_there(other, call)
    if len(theirs) < len(mine) or theirs[len(mine) - 1].seq == call.seq:
        return None
    met = theirs[len(mine) - 1]
    ahead, behind = (rank, other) if call.seq > met.seq else (other, rank)
    made = Counter((each.place, each.wrapper) for each in behind.of(Sent))
    for sent in ahead.of(Sent):
        made[sent.place, sent.wrapper] -= 1
        is_before = sent.group == call.group and sent.seq <= min(call.seq, met.seq)
        if made[sent.place, sent.wrapper] < 0 and is_before and sent.place is not None:
            return ahead, sent
    return None


def _from_there(rank: RankEvidence, call: Collective) -> list[Collective]:
    """The calls of a rank from the same line, by the same way."""
    where = call.group, call.op, call.place, call.way
    return [c for c in rank.collectives if (c.group, c.op, c.place, c.way) == where]


def _finding(
    case: Case, raised: Raised, call: Collective, ahead: RankEvidence, sent: Sent
) -> Finding:
    """The rank that has sent more is the first of the parties, whoever raised."""
    behind = [r.rank for r in case.evidence.ranks if all(s.seq != sent.seq for s in r.of(Sent))]
    one = ahead.rank
    number = f"broadcast #{sent.seq}"
    case.explain(raised)
    return Finding(
        code="DDP402",
        title="collective-order-mismatch",
        severity="error",
        certainty="evidence",
        ranks=(one,),
        places=(
            RankPlace(
                ranks=(one,), place=sent.place, doing=number, phase="forward", stack=sent.way
            ),
            RankPlace(
                ranks=(raised.rank.rank,),
                place=call.place,
                doing=f"{call.op} #{call.seq}",
                stack=call.way,
            ),
        ),
        cause=f"rank {one} sent its buffers in a pass of DDP ({number}, {sent.place}) that "
        f"{named(behind)} did not make: from there on each call met the one before. So "
        f"rank {raised.rank.rank} took for its {call.op} #{call.seq} what was not meant for it, "
        f"and raised {raised.exception.type}.",
        cure=Cure(text="Make the pass on every rank, or give the module within the wrapper."),
        consequences=case.consequences(),
    )
