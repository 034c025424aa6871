"""What a checkpoint holds, and which loads bring it back."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.machine import ELSEWHERE
from ddpdoctor.lint.engine.interpreter.objects import containers, keyed, members
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Exit, Way, events, walk
from ddpdoctor.lint.engine.interpreter.values import NOTHING, UNKNOWN, Term, Tuple, Value, What
from ddpdoctor.lint.engine.queries.paths import may_be

_DEPTH = 4
Saved = tuple[Event, dict[str, Value]]
"""A save, and what it writes under which keys."""


def parts(
    run: Run, value: Value | None, key: str = "", depth: int = _DEPTH
) -> Iterator[tuple[str, Value]]:
    """(its key in a dictionary, value) of all that a saved object consists of, itself first."""
    if value is None or depth == 0:
        return
    yield key, value
    if run.vm.type_of(value) == "dict":
        for each, inner in keyed.entries(run.vm, value):
            yield from parts(run, inner, str(each.constant), depth - 1)
        return
    content = containers.content(run.vm, value)
    if content is not None and isinstance(content.what, Tuple):
        for each in content.what.items:
            yield from parts(run, each, "", depth - 1)


def file_events(run: Run, *kinds: str) -> list[tuple[Event, Way]]:
    """What a run has saved, loaded and renamed; asked again and again by later runs."""
    found = run.answers.get("files")
    if found is None:
        found = run.answers["files"] = list(events(run.root, "save", "load", "rename"))
    return [(event, way) for event, way in found if event.kind in kinds]


def is_of(what: What, event: Event) -> bool:
    """Whether a value is, or is taken out of, what this load has read."""
    path = event.values.get("path")
    if not isinstance(what, Term) or path is None:
        return False
    if what.op == "loaded":
        return may_be(what.args[0], path.what)
    return any(is_of(each, event) for each in what.args)


def is_state(value: Value) -> bool:
    """Whether it is what `state_dict()` has given."""
    what = value.what
    is_own = isinstance(what, Term) and what.op == "state"
    return is_own or members.owner_of(what, "state_dict") is not None


def saved(run: Run) -> list[Saved]:
    """The dictionaries that are saved, as they were when the run ended."""
    found: list[Saved] | None = run.answers.get("saved")
    if found is None:
        found = run.answers["saved"] = [
            (event, kept)
            for event, _ in file_events(run, "save")
            if (
                kept := {
                    key: value
                    for key, value in parts(run, event.values.get("object"), depth=2)
                    if key
                }
                or _named(event)
            )
        ]
    return found


def _named(event: Event) -> dict[str, Value]:
    """What was saved by its keys alone, where what they hold is not known any more."""
    keys = event.values.get("keys")
    known = keys.what.items if keys is not None and isinstance(keys.what, Tuple) else ()
    return {str(key.constant): Value(NOTHING, UNKNOWN) for key in known}


def keys_read(run: Run, load: Event) -> set[str]:
    """The keys that are read of what is loaded; none, if it is handed on to somebody else."""
    if "result" not in load.values:
        return set()  # a library restores all that it has saved
    loaded = load.values["result"].what
    read = run.vm.reads.get(loaded, set()) if isinstance(loaded, Term) else set()
    return set() if ELSEWHERE in read or loaded in _handed_on(run) else read


def _handed_on(run: Run) -> set[What]:
    """What is kept as a whole, returned to nobody seen, or loaded by a single object."""
    found: set[What] | None = run.answers.get("handed_on")
    if found is None:
        found = run.answers["handed_on"] = set()
        for node, _ in walk(run.root):
            match node:
                case Exit(kind="return", value=Value(what=what)) if not run.is_entry:
                    found.add(what)
                case Event(kind="set_attribute", values={"owner": owner}) if _is_a_bag(run, owner):
                    pass
                case Event(kind="set_attribute" | "load_state", values=values):
                    found.update(each.what for each in values.values())
    return found


def _is_a_bag(run: Run, owner: Value) -> bool:
    """Whether an object has attributes alone, and who reads them is seen."""
    made = run.vm.object(owner)
    if made is None or made.cls < 0 or made.number in run.vm.handed:
        return False
    info = run.vm.classes[made.cls]
    return not info.bases and not any(isinstance(each, ast.FunctionDef) for each in info.node.body)
