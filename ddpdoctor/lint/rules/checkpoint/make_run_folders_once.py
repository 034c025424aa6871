"""A folder that every rank clears or makes, or that each rank names by itself.

## What it does
Finds `shutil.rmtree`, and `os.makedirs` or `mkdir` without `exist_ok=True`, of one path in code
that every rank runs, and paths that are made of the time, of a random number or of a listing on
each rank for itself.

## Why is this bad?
The first rank makes the folder, the others crash on it (FileExistsError), also where they have
looked whether it exists: all look before the first has made it. A slow rank clears what another has
already written there. And where each rank names the folder, what rank 0 saves the others seek
somewhere else.

## Example
```python
folder = f"runs/{time.strftime('%H%M%S')}"
os.makedirs(folder)
```

## Use instead
```python
name = [time.strftime("%H%M%S")]
dist.broadcast_object_list(name, src=0)
os.makedirs(f"runs/{name[0]}", exist_ok=True)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    RANKS,
    Table,
    Value,
    What,
    has_identity,
    text,
    within,
)
from ddpdoctor.lint.engine.queries.doing import doers, in_try, is_distributed, is_one_after_another
from ddpdoctor.lint.engine.queries.order import is_spawned
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP514", name="shared-path-race", confidence="likely")

_OWN_NAMES = {
    "clock": "by the time at which each rank comes there",
    "chance": "by a random number that each rank draws",
    "machine": "by something of each rank's own process",
    "disk": "by what each rank finds on the disk",
}

_DONE = {"make_folder": ("makes", "made"), "remove": ("removes", "removed")}
_NO_ERROR = {"makedirs": "exist_ok", "Path.mkdir": "exist_ok", "Path.unlink": "missing_ok"}
"""By which argument a function takes it for no error that it has been done."""


def check(run: Run) -> Iterator[Hit]:
    """Yield folders that all ranks clear or make at once, and paths that each rank names."""
    if not run.is_entry or not is_distributed(run):
        return
    yield from _made_by_all(run)
    yield from _named_by_each(run)


def _made_by_all(run: Run) -> Iterator[Hit]:
    starts = any(True for _ in events(run.root, "spawn"))
    made: set[What] = set()
    for event, way in events(run.root, "make_folder", "remove"):
        if starts and not is_spawned(way):
            continue  # by the process that starts the ranks
        path = _path(event)
        is_there = path is not None and path.what in made
        _note(made, event, way)
        if is_there and event.kind == "make_folder" and _looks(way):
            continue
        if path is None or not _is_of_several(path) or _may_be_done(event):
            continue
        who = doers(way)
        if who.mask != EVERYONE or in_try(way) or "suppress" in event.scopes:
            continue
        if not who.is_clear("disk") or is_one_after_another(way):
            continue
        does, done = _DONE[event.kind]
        harm, else_ = "all but the first crash", _NO_ERROR.get(event.name)
        if event.name == "rmtree":
            does, harm = "clears", "what another has written is lost"
        yield Hit(
            event.node,
            f"every rank {does} `{_shown(event)}`: {harm}",
            notes=(
                (f"all ranks have looked before the first has {done} it",)
                if any(choice.condition.agree.cause == "disk" for choice in who.choices)
                else ()
            ),
            help="on rank 0 alone, with a barrier behind it"
            + (f", or with {else_}=True" if else_ else ""),
            path=event.path,
        )


def _note(made: set[What], event: Event, way: Way) -> None:
    """Keep which folders are there by now, on whichever rank: it had made them, or found them."""
    path = _path(event)
    if event.kind == "remove":
        made.clear()
    elif path is not None and has_identity(path.what):
        asked = [step.node for step in way if isinstance(step.node, Choice)]
        if doers(way).mask == EVERYONE and all(_is_look(each) for each in asked):
            made.add(path.what)


def _looks(way: Way) -> bool:
    return any(isinstance(step.node, Choice) and _is_look(step.node) for step in way)


def _is_look(choice: Choice) -> bool:
    return choice.condition.agree.cause == "disk"


def _is_of_several(path: Value) -> bool:
    """Whether it is the path of all ranks, or of all on a node."""
    if path.agree.kind != "rank" or not path.agree.sure or not has_identity(path.what):
        return path.agree.kind == "same"
    parts = [each.entries for each in within(path.what) if isinstance(each, Table)]
    return len({tuple(each[rank] for each in parts) for rank in range(RANKS)}) < RANKS


def _named_by_each(run: Run) -> Iterator[Hit]:
    """A path of each rank's own that one rank writes and others are meant to find."""
    told: set[object] = set()
    for event, way in events(run.root, "make_folder", "save"):
        path = _path(event)
        if path is None or path.agree.kind != "local" or path.agree.cause not in _OWN_NAMES:
            continue
        if not path.agree.sure or path.why is None or path.why.root in told:
            continue
        if doers(way).some:
            continue  # rank 0 alone: its name is as good as any, unless others look for it
        if not _is_read_by_others(run, path):
            continue
        told.add(path.why.root)
        yield Hit(
            event.node,
            f"each rank names `{_shown(event)}` by itself: the ranks do not share it",
            notes=(Related.at(path.why.root.place, f"it is named {_OWN_NAMES[path.agree.cause]}"),),
            help="let rank 0 name it, and broadcast the name",
            path=event.path,
        )


def _is_read_by_others(run: Run, path: Value) -> bool:
    """Whether a rank that did not write there loads something from it."""
    return any(
        _mentions(loaded, path) and doers(way).mask != 1
        for event, way in events(run.root, "load", "list")
        if (loaded := _path(event)) is not None
    )


def _mentions(one: Value, part: Value) -> bool:
    return one.why is not None and part.why is not None and one.why.root == part.why.root


def _path(event: Event) -> Value | None:
    return event.values.get("path") or event.values.get("arg0") or event.values.get("object")


def _may_be_done(event: Event) -> bool:
    """Whether it is no error where another rank has done it already."""
    words = ("exist_ok", "missing_ok", "kw_exist_ok", "kw_missing_ok")
    allowed = [event.values.get(word) for word in words]
    return any(each is not None and not each.is_const(False) for each in allowed)


def _shown(event: Event) -> str:
    node = event.node
    if not isinstance(node, ast.Call):
        return event.name
    if event.name.startswith("Path.") and isinstance(node.func, ast.Attribute):
        return text(node.func.value, 30)
    given = [*node.args, *(each.value for each in node.keywords)]
    return text(given[0], 30) if given else event.name
