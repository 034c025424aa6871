"""Ranks that part: they wait for each other, or some have left and the others lost them.

It is what most differences between ranks end in, so whoever finds the difference explains it all.
"""

from __future__ import annotations

import signal

from ddpdoctor.diagnose.case import Case, Died, Raised, first_line, is_casualty, sides
from ddpdoctor.evidence import named

_SIZES = "op.preamble.length <= op.nbytes"


def has_parted(case: Case) -> bool:
    """Whether this is all that is still to be explained."""
    if case.died or any(not is_casualty(each.exception) for each in case.raised):
        return False
    return bool(case.deadlock or case.deserters or case.raised or case.casualties)


def struck(case: Case) -> tuple[Died | Raised, ...]:
    """The ends of ranks that gloo aborted, or told of sizes: their collective met another one."""
    aborted = (d for d in case.died if d.signal == signal.SIGABRT and d.rank.exiting is None)
    return (*aborted, *(each for each in case.raised if _SIZES in each.exception.message))


def explain_parting(case: Case) -> tuple[str, ...]:
    """Take it off the list of what is to be explained; what it meant for each rank."""
    told = [
        f"rank {each.rank.rank} then raised {each.exception.type}: "
        f"{first_line(each.exception.message, 400)}"
        for each in (*case.raised, *case.casualties)
    ]
    if case.deadlock is not None:
        told += [
            f"{named(side.ranks)} then waited for ever in {side.doing}"
            + (f" at {side.place}" if side.place else "")
            for side in sides(case.deadlock.blocked)
        ]
        case.explain(case.deadlock)
    case.explain(*case.raised)
    case.casualties, case.deserters = [], []
    return tuple(told)
