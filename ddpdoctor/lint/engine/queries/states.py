"""What a checkpoint holds, and which loads bring it back."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.objects import containers, keyed
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import Term, Tuple, Value, What
from ddpdoctor.lint.engine.queries.paths import may_be

_DEPTH = 4


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
