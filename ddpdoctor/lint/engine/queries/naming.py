"""Which failure a parting is, when a value of the rank's own decides."""

from __future__ import annotations

import ast

from ddpdoctor.lint.engine.interpreter.iteration import UNTIL
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Seq, events
from ddpdoctor.lint.engine.interpreter.values import Term, What
from ddpdoctor.lint.engine.queries.partings import Met, Parting
from ddpdoctor.lint.engine.queries.telling import as_met, filled_by_some

_TRAINING = frozenset({"forward", "backward"})


def name_of(run: Run, parting: Parting) -> str:
    """The code, "" where it is none of these."""
    agree = parting.condition.agree
    if parting.instead is not None:
        return "DDP402"
    if parting.by_rank and parting.mask != (1 << 16) - 1:
        return ""
    kinds = {each.event.kind for each in parting.met}
    if agree.cause == "order":
        return ""
    if agree.cause == "disk":
        return "DDP513"
    if parting.repeats:
        if is_decided(parting) or (parting.by_rank and filled_by_some(parting)):
            return ""  # DDP405, DDP401
        if "backward" in kinds or kinds <= _TRAINING:
            return "DDP207"
        in_its_order = parting.sure and not filled_by_some(parting) and as_met(run, parting)
        return "DDP413" if in_its_order else "DDP418"
    if parting.left == "continue":
        return "DDP307"
    if parting.left in ("break", "end") or (parting.left == "return" and parting.loop):
        return "DDP307" if agree.cause == "exception" and parting.left == "return" else ""
    if isinstance(parting.node, ast.Try):
        return "DDP307" if kinds & _TRAINING else ""
    if parting.left == "" and not parting.by_rank and _reloads(parting):
        return "DDP505"
    if kinds <= _TRAINING:
        return "DDP307" if "backward" in kinds else ""
    if parting.by_rank and not parting.both:
        return ""  # DDP401
    if not parting.both and any(map(_trains, parting.met)):
        return "DDP307"
    return "DDP418" if not parting.both and asks_how_many(parting.condition.what) else "DDP402"


def is_decided(parting: Parting) -> bool:
    """Whether a condition ends the loop: that of a `while`, or of an iterator that stops itself."""
    return isinstance(parting.node, ast.While) or parting.condition.what == UNTIL


def _trains(met: Met) -> bool:
    """Whether there is a backward in what is met."""
    inside = met.chain[0].body if met.chain else Seq([met.event])
    return any(True for _ in events(inside, "backward"))


def asks_how_many(what: What) -> bool:
    """Whether it is asked if this rank has anything, or how much of it."""
    if not isinstance(what, Term):
        return False
    return what.op in ("filled", "len") or any(asks_how_many(each) for each in what.args)


def _reloads(parting: Parting) -> bool:
    node = parting.way[-1].node if parting.way else None
    if not isinstance(node, Choice):
        return False
    found = Seq([each for arm in node.arms for each in arm.body.items])
    return any(True for _ in events(found, "load", "load_state"))
