"""Looks at the disk in each round, for what may come at any time."""

from __future__ import annotations

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Loop, Way, events
from ddpdoctor.lint.engine.interpreter.values import NONE, has_identity
from ddpdoctor.lint.engine.queries.doing import doers, synchronises
from ddpdoctor.lint.engine.queries.partings import Parting, changes
from ddpdoctor.lint.engine.queries.paths import is_listed, may_be
from ddpdoctor.lint.engine.queries.races import looks_of, made_by

_WRITES = ("save", "write", "rename", "copy_file", "make_folder", "download")


def watched(run: Run, parting: Parting) -> Event | None:
    """The look by which ranks decide, if each looks anew in each round of a loop for the same.

    Who does that waits for what others bring: it comes between the looks of two ranks. What ranks
    of the program make themselves they may wait for, which is asked elsewhere. What is loaded by
    the very name that is looked for was there before: the user has named it to go on from. Where
    nothing else is heard in the loop, a rank that has not seen it yet goes round until it has.
    """
    if parting.condition.agree.cause != "disk" or not parting.way:
        return None
    for look, way in looks_of(run, parting):
        loop = _loop_around(parting.way, way)
        path = look.values.get("path")
        if loop is None or path is None or path.agree.divergent or not has_identity(path.what):
            continue
        if doers(way).some or changes(run, loop, path.what) or _is_made_here(run, look):
            continue
        loads = (load.values.get("path", NONE) for load, _ in events(loop.body, "load"))
        if any(each.what == path.what for each in loads):
            continue
        if parting.repeats or parting.left or _hears_more(loop, parting):
            return look
    return None


def _loop_around(one: Way, other: Way) -> Loop | None:
    """The innermost loop around both."""
    inside = {id(step.node) for step in other}
    loops = (step.node for step in reversed(one) if isinstance(step.node, Loop))
    return next((each for each in loops if id(each) in inside), None)


def _is_made_here(run: Run, look: Event) -> bool:
    """Whether the program itself may make what is looked for."""
    path = look.values["path"].what
    made = (made_by(event) for event, _ in events(run.root, *_WRITES))
    opened = (event.values.get("path") for event, _ in events(run.root, "open"))
    return any(
        each is not None and (may_be(path, each.what) or is_listed(path, each.what))
        for each in (*made, *opened)
    )


def _hears_more(loop: Loop, parting: Parting) -> bool:
    """Whether ranks wait for each other in a loop where this choice does not lead to it."""
    choice = parting.way[-1].node
    arms = choice.arms if isinstance(choice, Choice) else ()
    chosen = {id(event) for arm in arms for event, _ in events(arm.body)}
    return any(synchronises(event) and id(event) not in chosen for event, _ in events(loop.body))
