"""The lines that set the learning rate of an optimizer by hand."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Loop, Way, events
from ddpdoctor.lint.engine.interpreter.values import Const, Partial, Term, Value, What


def settings(run: Run) -> Iterator[tuple[Event, Way, What]]:
    """Each `group["lr"] = ...`, with the optimizer whose group that is."""
    for event, way in events(run.root, "set_item"):
        if not event.values["key"].is_const("lr"):
            continue
        begun = [step.begun for step in way if isinstance(step.node, Loop)]
        through = [each.values["over"].what for each in begun if each is not None]
        optimizer = _of_groups(event.values["owner"].what, *through[-1:])
        if optimizer is not None:
            yield event, way, optimizer


def _of_groups(*these: object) -> What | None:
    """The optimizer of whose groups of parameters one of these is, or is taken from."""
    for each in these:
        while isinstance(each, Term) and each.op == "item":
            each = each.args[0]
        if isinstance(each, Partial) and ("#", Value(Const("param_groups"))) in each.named:
            return each.callee.what
    return None
