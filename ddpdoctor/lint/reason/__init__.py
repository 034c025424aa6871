"""Why the ways of two ranks parted: the decisions on the way of one that the other does not share.

The program is run in the head with the lines at which the ranks stand marked. A stack is then a way
through the tree of what was done, and each choice, exit and loop on it is a turn. Turns that both
have taken alike do not part them; of the others the nearest does that ranks decide differently.
"""

from __future__ import annotations

from ddpdoctor.lint.reason.heads import Heads, Stack
from ddpdoctor.lint.reason.reasons import Reason, order
from ddpdoctor.lint.reason.turns import Line

__all__ = ["Heads", "Line", "Reason", "Stack", "reason"]


def reason(mine: Stack, theirs: Stack) -> Reason | None:
    """Why ranks stand at one line and others at another; None where the source does not say."""
    heads = Heads([mine, theirs])
    found = [*heads.reasons(mine, theirs), *heads.reasons(theirs, mine)]
    return min(found, key=order, default=None)
