"""Samples in the order of a folder's listing.

## What it does
Finds what `os.listdir`, `glob` and `iterdir` have listed, not sorted or sorted by a time, where a
Dataset picks its samples by that order, or each rank takes its part of it.

## Why is this bad?
The order of a listing is the file system's, and differs between machines; times differ between
copies. Ranks then mean different files by sample 7: some are read twice, some never.

## Example
```python
class Files(Dataset):
    def __init__(self, folder):
        self.files = os.listdir(folder)
```

## Use instead
```python
class Files(Dataset):
    def __init__(self, folder):
        self.files = sorted(os.listdir(folder))
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.edits import end_of, start_of
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Seq, events
from ddpdoctor.lint.engine.interpreter.values import FIRST_HOST, OPEN, Value, Why
from ddpdoctor.lint.engine.queries.sharding import LOADER, dealt, lone_readings, made
from ddpdoctor.lint.rule import About, Edit, Fix, Hit

ABOUT = About(code="DDP213", name="unsorted-listing", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield listings that decide which sample is which, where ranks are of several hosts."""
    if run.vm.there == FIRST_HOST:
        return
    for node, why in _told(run):
        by_time = "times" in why.text
        what = "by a time" if by_time else "as the file system gives it"
        yield Hit(
            node,
            f"the samples' order is that of a listing {what}: it differs between machines",
            help="sort by name: `sorted(...)`",
            fix=None if by_time else _fix(run, why),
            stands=run.is_entry,
            path=why.place.path,
        )


def clears(run: Run) -> Iterator[tuple[ast.AST, str]]:
    """What a program lists whose ranks are all of one host, and what it may: of one file system."""
    if run.vm.there != FIRST_HOST:
        return
    for node, why in _told(run):
        yield node, why.place.path
    for path in run.vm.files if run.is_entry else ():
        source = run.source(path)
        calls = source.nodes if source is not None else ()
        yield from ((each, path) for each in calls if _lists(each))


def _lists(node: ast.AST) -> bool:
    """Whether it is written as a listing is, of whatever."""
    called = node.func if isinstance(node, ast.Call) else None
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in _LISTING


_LISTING = ("glob", "iglob", "iterdir", "listdir", "rglob", "scandir", "walk")


def _told(run: Run) -> Iterator[tuple[ast.Call, Why]]:
    """The listings by whose order samples are picked or dealt out, and why it differs."""
    mine = dealt(run)
    read = [run.vm.workers[event] for number, event in made(run, LOADER).items() if number in mine]
    if "DistributedSampler" in run.vm.program.words:
        read += lone_readings(run)
    told: set[int] = set()
    for work in (*read, run.root):
        for why in _orders(work) if work is not run.root else _dealt_out(work):
            if not isinstance(why.node, ast.Call) or id(why.node) in told:
                continue
            told.add(id(why.node))
            yield why.node, why


def _orders(work: Seq) -> Iterator[Why]:
    """Why the order differs in which samples are picked, of all that were listed before."""
    inside = {event.place for event, _ in events(work, "list")}
    for event, _ in events(work, "pick", "sample", "iterate"):
        found: list[Value] = []
        if event.kind == "pick" and event.values["index"].constant is OPEN:
            found = [event.values["order"]]
        elif event.kind == "iterate":
            found = [event.values["content"]]
        for each in found:
            why = each.why.root if each.agree.cause == "order" and each.why else None
            if why is not None and why.place not in inside:
                yield why


def _dealt_out(root: Seq) -> Iterator[Why]:
    """Why the order differs of what ranks take their parts of."""
    listed = {event.place for event, _ in events(root, "list")}
    for event, _ in events(root, "deal"):
        order = event.values["order"]
        if order.agree.cause == "order" and order.why and order.why.root.place in listed:
            yield order.why.root


def _fix(run: Run, why: Why) -> Fix | None:
    source = run.source(why.place.path)
    if source is None or not isinstance(why.node, ast.Call):
        return None
    edits = (
        Edit(*start_of(source, why.node), "sorted("),
        Edit(*end_of(source, why.node), ")"),
    )
    return Fix(edits)
