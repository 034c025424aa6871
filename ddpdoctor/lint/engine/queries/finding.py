"""Files that are there by the time at which somebody looks for them."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.tree import Arm, Choice, Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import Term, Value
from ddpdoctor.lint.engine.queries.doing import between, doers, synchronises
from ddpdoctor.lint.engine.queries.order import is_after
from ddpdoctor.lint.engine.queries.partings import leaves
from ddpdoctor.lint.engine.queries.paths import same_path


def is_there_by_then(way: Way) -> bool:
    """Whether nobody goes this way: only who misses a file that rank 0 has made before all met.

    Rank 0 may have looked for it, too, and have found it.
    """
    sought = list(missed(way))
    for event, at in events(way[0].seq, "save", "write", "open") if sought else ():
        mine = [to for path, to in sought if same_path(path, event.values.get("path"))]
        if mine and _makes(event) and doers(at).mask & 1 and doers(at).is_clear("disk"):
            for to in mine:
                if is_after(at, to) and any(map(synchronises, between(at, to))):
                    return True
    return False


def missed(way: Way) -> Iterator[tuple[Value, Way]]:
    """The files that who goes a way has looked for and not found, and the ways to the looks."""
    looks = {
        look.values["result"].what: (look.values["path"], to)
        for look, to in events(way[0].seq, "look")
        if "result" in look.values and "path" in look.values
    }
    for choice, arm in _taken(way):
        what, holds = choice.condition.what, arm.holds
        if isinstance(what, Term) and what.op == "not" and holds is not None:
            what, holds = what.args[0], not holds
        if holds is False and what in looks:
            yield looks[what]


def _taken(way: Way) -> Iterator[tuple[Choice, Arm]]:
    """The arms of choices that lead there: those around it, and those by which nobody has left."""
    for number, step in enumerate(way):
        for earlier in step.seq.items[: step.index]:
            staying = (
                [arm for arm in earlier.arms if leaves(arm.body) is None]
                if isinstance(earlier, Choice)
                else []
            )
            if isinstance(earlier, Choice) and len(staying) == 1 < len(earlier.arms):
                yield earlier, staying[0]
        if isinstance(step.node, Choice) and number + 1 < len(way):
            inside = way[number + 1].seq
            yield from ((step.node, arm) for arm in step.node.arms if arm.body is inside)


def _makes(event: Event) -> bool:
    """Whether it writes the file, and reads nothing of it."""
    mode = event.values.get("mode")
    return event.kind != "open" or (
        mode is not None and isinstance(mode.constant, str) and "w" in mode.constant
    )
