"""What a checkpoint holds, and which loads bring it back."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter import objects
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import Const, Term, Tuple, Value, What

_DEPTH = 4


def parts(
    run: Run, value: Value | None, key: str = "", depth: int = _DEPTH
) -> Iterator[tuple[str, Value]]:
    """(its key in a dictionary, value) of all that a saved object consists of, itself first."""
    if value is None or depth == 0:
        return
    yield key, value
    if run.vm.type_of(value) == "dict":
        for each, inner in objects.entries(run.vm, value):
            yield from parts(run, inner, str(each.constant), depth - 1)
        return
    content = objects.content(run.vm, value)
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
        return _may_be(what.args[0], path.what)
    return any(is_of(each, event) for each in what.args)


def _may_be(read: What, written: What) -> bool:
    """Whether a path is one of those that are written: `epoch-2.pt` of `f"epoch-{epoch}.pt"`."""
    if read == written:
        return True
    if not isinstance(read, Term) or not isinstance(written, Term) or written.op != "path":
        return False
    folder, name = written.args[:-1], written.args[-1]
    if read.op == "path" and read.args[:-1] == folder:
        return _fits(read.args[-1], name)
    listed = read.args[0] if read.op == "path" and len(read.args) == 1 else read
    return (
        isinstance(listed, Term)
        and listed.op == "listed"
        and listed.args == (Term("path", folder),)
    )


def _fits(name: What, pattern: What) -> bool:
    """Whether a name is what a text with a counter in it may be, or another one of such a text."""
    if not isinstance(pattern, Term) or pattern.op != "text":
        return False
    if isinstance(name, Term) and name.op == "text":
        return _written(name) == _written(pattern)
    parts = [".*" if word is None else re.escape(word) for word in _written(pattern)]
    return isinstance(name, Const) and re.fullmatch("".join(parts), str(name.value)) is not None


def _written(text: Term) -> list[str | None]:
    """The words of a text as they stand there, and None for each that is put in."""
    return [str(each.value) if isinstance(each, Const) else None for each in text.args]
