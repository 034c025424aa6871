"""Whether some ranks will never move again: in their collectives, or before the first of them."""

from __future__ import annotations

from ddpdoctor.diagnose import joining, waiting
from ddpdoctor.diagnose.waiting import Deadlock
from ddpdoctor.evidence import Evidence


def prove_deadlock(evidence: Evidence) -> Deadlock | None:
    """The deadlock that the evidence proves, or None."""
    if not evidence.one_time:
        return None  # those that were seen waiting may never have waited at once
    if evidence.is_cut_short:
        return None  # a rank may have come that could not write so
    return waiting.communicating(evidence) or joining.stranded(evidence)


def may_be_deadlocked(evidence: Evidence) -> bool:
    """Whether there were a deadlock if all that are known to wait did so at one time."""
    if not any(rank.stuck for rank in evidence.ranks):
        return False
    return waiting.may_communicate_no_more(evidence) or joining.stranded(evidence) is not None
