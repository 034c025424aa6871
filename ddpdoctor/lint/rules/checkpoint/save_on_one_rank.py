"""Every rank writes one file.

## What it does
Finds `torch.save` that every rank reaches, with a path in which no rank occurs, in the function
that wraps the model in DDP or is called from it. And other files that every rank writes under one
name: what each has computed of its own data, and what all have read before they write it anew; what
else all write, as the options of the job, is told as information.

## Why is this bad?
N processes write one file at the same time: it is torn, or the last one wins. Of what each rank has
found, only its own is left then; and who comes later reads an empty file.

## Example
```python
ddp_model = DDP(net)
train(ddp_model)
torch.save(ddp_model.module.state_dict(), path)
```

## Use instead
```python
if rank == 0:
    torch.save(ddp_model.module.state_dict(), path)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.library.files import OPENED
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Choice, Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    NONE,
    NOTHING,
    SAME,
    Const,
    Lib,
    Value,
    What,
    blended,
    has_identity,
    text,
)
from ddpdoctor.lint.engine.queries.doing import (
    between,
    doers,
    has_looked,
    in_try,
    is_distributed,
    is_one_after_another,
    synchronises,
)
from ddpdoctor.lint.engine.queries.finding import is_there_by_then
from ddpdoctor.lint.engine.queries.order import asked_too_early, is_after, is_spawned
from ddpdoctor.lint.engine.queries.paths import same_path, spelled
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP502", name="every-rank-saves", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield saves of several ranks into one file."""
    if not is_distributed(run):
        return
    if run.is_entry:
        told: set[int] = set()
        yield from _data_of_each(run, told)
        rewritten = [*_rewritten(run)]
        yield from rewritten
        yield from _written_by_all(run, told | {id(each.node) for each in rewritten})
    # Of one line that is come to in several ways, the way that most ranks go is told.
    saves = sorted(events(run.root, "save"), key=lambda save: doers(save[1]).mask != EVERYONE)
    for event, way in saves:
        path = event.values.get("path")
        if path is None or not same_path(path, path):
            continue
        who = doers(way)
        writers = who.mask & ~who.kept_out
        if (writers & run.vm.there).bit_count() < 2:
            continue
        if not (run.is_entry or _belongs_to_a_wrapper(event, run)):
            continue
        clear = who.is_clear("data", "clock", by_files=True, if_well=True, into=path.what)
        if not clear or is_one_after_another(way):
            continue
        everyone = writers == EVERYONE
        early = _meant_for_one(run, event, way)
        sure = everyone and who.sure and run.is_entry and not early
        yield Hit(
            event.node,
            f"{'every rank' if everyone else 'a rank of each node'} writes `{_shown(event)}`: "
            "the file is torn, or the last rank wins",
            notes=early,
            help="save on one rank, and share the outcome before others read it",
            confidence="certain" if sure else "likely",
            path=event.path,
        )


def _data_of_each(run: Run, told: set[int]) -> Iterator[Hit]:
    """Files of one name into which each rank writes what it has computed of its own data."""
    starts = any(True for _ in events(run.root, "spawn"))
    files: set[What] = set()
    for event, way in events(run.root, "write", "fill", "print"):
        content, file = _written(event)
        if content.agree.cause != "data" or not content.agree.sure or file.what in files:
            continue
        path = _file(run, event, file)
        if not _is_of_all(path, way) or (starts and not is_spawned(way)):
            continue
        made = run.vm.object(file)
        if made is not None:
            files.add(file.what)
            told.add(id(made.node))
        calls = [step.node for step in way if isinstance(step.node, Called)][1:]
        yield Hit(
            event.node,
            "each rank writes what it has found in its own data here: the last rank wins",
            notes=tuple(Related.at(each.place, "every rank comes this way") for each in calls[-1:]),
            why=content.why,
            help="gather it first, and write on one rank; or put the rank into the name",
            confidence="likely",
            path=event.path,
        )


def _written(event: Event) -> tuple[Value, Value]:
    """What is written, and the open file into which it is, where it is one."""
    values = event.values
    if event.kind != "print":
        return values.get("content", NONE), values.get("object", NONE)
    given = [each for role, each in values.items() if role.startswith("arg")]
    return Value(NOTHING, *blended(given)), values.get("kw_file", NONE)


def _rewritten(run: Run) -> Iterator[Hit]:
    """Files that every rank reads, and then writes anew while others may still read."""
    opened = [
        (event, way)
        for event, way in events(run.root, "open")
        if _is_of_all(event.values.get("path"), way)
    ]
    for event, to in opened:
        if not _empties(event) or has_looked(to):  # DDP212 tells it
            continue
        for read, at in opened:
            if not is_after(at, to) or _empties(read) or not _is_same_file(read, event):
                continue
            if not any(synchronises(each) for each in between(at, to)):
                yield Hit(
                    event.node,
                    "every rank writes anew what others may not have read yet: they find it empty",
                    notes=(Related.at(read.place, "every rank reads it"),),
                    help="on one rank alone, with a barrier behind it",
                    confidence="likely",
                    path=event.path,
                )
                break


def _written_by_all(run: Run, told: set[int]) -> Iterator[Hit]:
    """Other files that every rank begins anew: mostly all write the same."""
    starts = any(True for _ in events(run.root, "spawn"))
    saved = [each.values.get("path", NONE) for each, _ in events(run.root, "save")]
    for event, way in events(run.root, "open"):
        path = event.values.get("path")
        if id(event.node) in told or not _empties(event) or not _is_of_all(path, way):
            continue
        if (starts and not is_spawned(way)) or any(same_path(path, each) for each in saved):
            continue  # by who starts the ranks, or it is told of where it is written
        if path is None or path.agree != SAME or path.what in _NOWHERE or not doers(way).sure:
            continue
        told.add(id(event.node))
        yield Hit(
            event.node,
            "every rank writes this file: it is torn, or the last rank wins",
            help="write it on one rank; or put the rank into the name",
            confidence="likely",
            harmless=True,
            path=event.path,
        )


_NOWHERE = (Const("/dev/null"), Lib("os.devnull"))


def _is_same_file(one: Event, other: Event) -> bool:
    return spelled(one.values["path"].what) == spelled(other.values["path"].what)


def _empties(opened: Event) -> bool:
    mode = opened.values.get("mode", NONE).constant
    return isinstance(mode, str) and "w" in mode


def _file(run: Run, write: Event, file: Value) -> Value | None:
    """The path that is written to, of a file that is open as well."""
    if "path" in write.values:
        return write.values["path"]
    mode = run.vm.store.get((file.what, "mode")) or NONE
    is_new = isinstance(mode.constant, str) and "w" in mode.constant
    return run.vm.store.get((file.what, OPENED)) if is_new else None


def _is_of_all(path: Value | None, way: Way) -> bool:
    """Whether each rank comes there for sure, at its own time, and means the same file."""
    if path is None or in_try(way) or is_one_after_another(way):
        return False
    by_luck = path.agree.cause == "exception" and not path.agree.sure  # they fail alike, mostly
    if not same_path(path, path) and not (by_luck and has_identity(path.what)):
        return False
    who = doers(way)
    is_clear = who.mask & ~who.kept_out == EVERYONE and who.is_clear("disk", "clock")
    return is_clear and not is_there_by_then(way)


def _meant_for_one(run: Run, save: Event, way: Way) -> tuple[Related, ...]:
    """What a condition around it went by that no rank fails: the question for a group yet to come.

    A condition that ranks answer differently is a choice on the way.
    """
    source = run.source(save.path)
    asked = next((event for event, *_ in asked_too_early(run)), None)
    if source is None or asked is None:
        return ()
    open_ = {id(step.node.node) for step in way if isinstance(step.node, Choice)}
    decided = (each for each in source.nodes if isinstance(each, ast.If) and id(each) not in open_)
    if not any(
        each is save.node for one in decided for part in one.body for each in ast.walk(part)
    ):
        return ()
    return (Related.at(asked.place, "asked before the group is joined: each rank is then alone"),)


def _belongs_to_a_wrapper(event: Event, run: Run) -> bool:
    """Whether a function that nobody calls wraps what it saves: then its ranks are all of them."""
    return any(True for _ in events(run.root, "wrap"))


def _shown(event: Event) -> str:
    node = event.node
    path = node.args[1] if isinstance(node, ast.Call) and len(node.args) > 1 else node
    return text(path, 30)
