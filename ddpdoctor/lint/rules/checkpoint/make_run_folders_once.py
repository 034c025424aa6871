"""A folder that every rank clears or makes, or that each rank names by itself.

## What it does
Finds `shutil.rmtree`, and `os.makedirs`, `mkdir` or `shutil.copytree` that may not find it there,
of one path in code that every rank runs, and paths that are made of the time, of a random number or
of a listing on each rank for itself.

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
from itertools import pairwise
from typing import cast

from ddpdoctor.lint.engine.interpreter.folding import CLOCKED
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Loop, Way, events
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    RANKS,
    Const,
    Table,
    Tensor,
    Term,
    Value,
    What,
    has_identity,
    text,
    within,
)
from ddpdoctor.lint.engine.queries.doing import (
    doers,
    has_looked,
    in_try,
    is_distributed,
    is_look,
    is_one_after_another,
)
from ddpdoctor.lint.engine.queries.order import is_spawned, is_sure
from ddpdoctor.lint.engine.queries.paths import Spelling, folder_and_name, may_be, spelled
from ddpdoctor.lint.engine.queries.races import (
    is_read,
    leading_call,
    looks_behind,
    made_by,
    on_any_way,
)
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
    told: set[int] = set()
    for hit in (*_made_by_all(run), *_named_by_each(run)):
        if id(hit.node) not in told:
            told.add(id(hit.node))
            yield hit


def _made_by_all(run: Run) -> Iterator[Hit]:
    starts = any(True for _ in events(run.root, "spawn"))
    made: set[Spelling] = set()
    read: set[What] = set()
    for event, way in events(run.root, "make_folder", "remove", "open", "load"):
        if event.kind in ("open", "load"):
            if (file := _path(event)) is not None and is_read(event) and is_sure(way):
                read.add(file.what)
            continue
        if starts and not is_spawned(way):
            continue  # by the process that starts the ranks
        path = _path(event)
        is_there = path is not None and (
            _place(path.what) in made or any(_is_folder_of(path.what, each) for each in read)
        )
        _note(made, event, way)
        if event.kind == "remove":
            read.clear()
        if is_there and event.kind == "make_folder" and has_looked(way):
            continue
        if path is None or _may_be_done(event):
            continue
        is_timed = event.kind == "make_folder" and _is_of_one_time(path)
        is_beside = event.kind == "make_folder" and _is_of_own_files(path)
        is_given = event.kind == "make_folder" and _is_given_a_name(run, path)
        if not any((is_timed, is_beside, is_given, _is_of_several(path))):
            continue
        who = doers(way)
        if who.mask != EVERYONE or in_try(way) or "suppress" in event.scopes:
            continue
        causes = ["disk", *([path.agree.cause] if is_beside or is_given else [])]
        causes += ["exception"] if _is_unreadable(path, way) else []
        if not who.is_clear(*causes) or is_one_after_another(way):
            continue
        does, done = _DONE[event.kind]
        harm, else_ = "all but the first crash", _NO_ERROR.get(event.name)
        if event.name == "rmtree":
            does, harm = "clears", "what another has written is lost"
        if is_timed:
            harm = "whoever comes there in the same second or minute as another crashes"
        if is_beside:
            harm = "of two whose samples' files lie in one folder, one crashes"
        if is_given:
            harm = "where it is given a name, all but the first crash"
        yield Hit(
            event.node,
            f"every rank {does} `{_shown(event)}`: {harm}",
            notes=(
                (f"all ranks have looked before the first has {done} it",)
                if any(map(is_look, who.choices))
                else ()
            ),
            help="on rank 0 alone, with a barrier behind it"
            + (f", or with {else_}=True" if else_ else ""),
            path=event.path,
        )


def _is_unreadable(path: Value, way: Way) -> bool:
    """Whether a rank comes there that could not read this very file: then no rank can."""
    return any(
        _path(event) == path and is_read(event)
        for step, inside in pairwise(way)
        if isinstance(step.node, Choice) and isinstance(step.node.node, ast.Try)
        if inside.seq is not step.node.arms[0].body
        for event, _ in events(step.node.arms[0].body, "load", "open")
    )


def _is_folder_of(folder: What, file: What) -> bool:
    """Whether a folder is there as surely as a file that was read."""
    of = _file_in(folder)
    if of is not None:
        return of == file
    return folder_and_name(spelled(file))[0] == spelled(folder) != ()


def _file_in(folder: What) -> What | None:
    """Of which file it is the folder, where it is asked of that."""
    match folder:
        case Term(op="lib", args=("os.path.dirname", of, *_)) | Term(op="of", args=(of, "parent")):
            return cast("What", of)
        case Term(op="item", args=(Term(op="lib", args=("os.path.split", of, *_)), Const(value=0))):
            return cast("What", of)
    return None


def _is_of_own_files(path: Value) -> bool:
    """Whether it is the folder of a file whose name alone is that of each rank's own sample."""
    file = _file_in(path.what)
    if file is None or path.agree.cause not in ("data", "shard"):
        return False
    folder, name = (
        [each for part in parts for each in within(part)]
        for parts in folder_and_name(spelled(file))
    )
    return any(map(_is_of_a_sample, name)) and not any(map(_is_of_a_sample, folder))


def _is_of_a_sample(part: object) -> bool:
    return isinstance(part, Tensor) or (isinstance(part, Term) and part.op == "local")


def _place(folder: What) -> Spelling:
    """A folder as it is spelled, be it named by a file in it."""
    file = _file_in(folder)
    named = folder_and_name(spelled(file))[0] if file is not None else ()
    return named or spelled(folder)


def _note(made: set[Spelling], event: Event, way: Way) -> None:
    """Keep which folders are there by now, on whichever rank: it had made them, or found them."""
    path = _path(event)
    if event.kind == "remove":
        made.clear()
    elif path is not None and has_identity(path.what):
        asked = [step.node for step in way if isinstance(step.node, Choice)]
        if doers(way).mask == EVERYONE and all(map(is_look, asked)):
            made.add(_place(path.what))


def _is_of_several(path: Value) -> bool:
    """Whether it is the path of all ranks, or of all on a node."""
    if path.agree.kind != "rank" or not path.agree.sure or not has_identity(path.what):
        return path.agree.kind == "same"
    parts = [each.entries for each in within(path.what) if isinstance(each, Table)]
    names = {tuple(each[rank] for each in parts) for rank in range(RANKS)}
    return bool(parts) and len(names) < RANKS


def _is_of_one_time(path: Value) -> bool:
    """Whether a path is named by the clock alone, by no part of a second: ranks often agree."""
    if path.agree.cause != "clock" or not path.agree.sure or not has_identity(path.what):
        return False
    parts = [each for each in within(path.what) if isinstance(each, Table | Term)]
    return any(isinstance(each, Term) and each.op == CLOCKED for each in parts) and not any(
        isinstance(each, Table) or each.op == "local" for each in parts
    )


def _is_given_a_name(run: Run, path: Value) -> bool:
    """Whether each rank names it by the clock only where the user has given it no name."""
    if path.agree.cause != "clock" or not has_identity(path.what):
        return False
    parts = [each for each in within(path.what) if isinstance(each, Term)]
    if any(each.op in ("local", CLOCKED) for each in parts):
        return False
    several = [run.vm.store.options(Value(each)) for each in parts if each.op == "joined"]
    return bool(several) and all(any(_is_an_option(one.what) for one in each) for each in several)


def _is_an_option(what: What) -> bool:
    return isinstance(what, Term) and what.op == "option"


def _named_by_each(run: Run) -> Iterator[Hit]:
    """A path of each rank's own that one rank writes and others are meant to find."""
    starts = any(True for _ in events(run.root, "spawn"))
    told: set[object] = set()
    for event, way in events(run.root, "make_folder", "save"):
        if starts and not is_spawned(way):
            continue  # the ranks are handed the name
        path = _path(event)
        if path is None or path.agree.kind != "local" or path.agree.cause not in _OWN_NAMES:
            continue
        if not path.agree.sure or path.why is None or path.why.root in told:
            continue
        if doers(way).some:  # its name is as good as any, unless others look for what it made
            sought = _sought_by_others(run, path, way)
        else:
            sought = _read_by_others(run, path)
        if sought is None or _is_found_as_it_was(run, path):
            continue
        told.add(path.why.root)
        place = (leading_call(way, sought[1]) or sought[0]).place
        yield Hit(
            event.node,
            f"each rank names `{_shown(event)}` by itself: the ranks do not share it",
            notes=(
                Related.at(path.why.root.place, f"it is named {_OWN_NAMES[path.agree.cause]}"),
                Related.at(place, "others look for it here, by their own name"),
            ),
            help="let rank 0 name it, and broadcast the name",
            path=event.path,
        )


def _is_found_as_it_was(run: Run, path: Value) -> bool:
    """Whether the looks that decide it are for what no rank makes: it is there for all or none.

    Or for something else than such a name: by what there was to resume a run has got no other.
    """
    if path.agree.cause != "disk":
        return False
    looks = [event for event, _ in looks_behind(run, path)]
    made = [made_by(e) for e, _ in events(run.root, "make_folder", "save", "open", "rename")]
    return bool(looks) and not any(
        look.kind == "list"
        or asked is None
        or (
            may_be(asked.what, path.what)
            and any(each and may_be(asked.what, each.what) for each in made)
        )
        for look in looks
        for asked in (_path(look),)
    )


def _read_by_others(run: Run, path: Value) -> tuple[Event, Way] | None:
    """Where a rank that did not write there loads something from it."""
    read = events(run.root, "load", "list")
    saves = [(_path(e), doers(w).mask) for e, w in events(run.root, "save")]
    mine = {file.what for file, mask in saves if file is not None and mask == EVERYONE}
    return next(
        (
            (event, way)
            for event, way in read
            if _is_own(event, path) and doers(way).mask != 1
            if cast("Value", _path(event)).what not in mine
        ),
        None,
    )


def _sought_by_others(run: Run, path: Value, by: Way) -> tuple[Event, Way] | None:
    """Where ranks that have made nothing there wait for it, or read what is in it."""
    others = ~doers(by).mask
    if path.agree.cause == "disk" or _is_made_as_named(run, path):
        return None
    made = events(run.root, "make_folder", "save", "open")
    if any(_is_own(each, path) and doers(way).mask & others for each, way in made):
        return None
    waits = {id(step.node) for _, way in events(run.root, "sleep") for step in way[:-1]}
    for event, way in events(run.root, "load", "list", "look"):
        is_read = event.kind != "look" or _is_in_loop(way, waits)
        if is_read and _is_own(event, path) and doers(way).mask & others:
            return event, way
    return None


def _is_made_as_named(run: Run, path: Value) -> bool:
    """Whether whoever names it has made it, as `mkdtemp` does, or may have."""
    return any(
        part.op == "local" and part.args and str(part.args[0]).startswith("tempfile.")
        for each in on_any_way(run, path)
        for part in within(each.what)
        if isinstance(part, Term)
    )


def _is_in_loop(way: Way, around: set[int]) -> bool:
    """Whether its innermost loop is one of these."""
    loops = [step.node for step in way if isinstance(step.node, Loop)]
    return bool(loops) and id(loops[-1]) in around


def _is_own(event: Event, path: Value) -> bool:
    """Whether it is about a path that has the same part of the rank's own."""
    of = _path(event)
    return of is not None and _mentions(of, path)


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
    if event.name == "copytree":
        given = given[1:]
    return text(given[0], 30) if given else event.name
