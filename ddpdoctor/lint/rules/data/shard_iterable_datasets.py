"""An iterable dataset that every rank, or every worker, reads in full.

## What it does
Finds loaders over an IterableDataset whose reading never asks for the rank, or asks before there is
a group that could tell it, or that is given the rank but loaded by several workers and never asks
which worker it runs in, or adds that one's number to the rank, which others come to as well. And
loaders of a rank's own part that are handed to accelerate's prepare().

## Why is this bad?
No sampler can shard a stream. Every rank trains on all of it: N times the work, no speed-up; with
workers every sample comes once per worker. What is a rank's part already, and is dealt out again
by accelerate, loses all but a part of that part.

## Example
```python
class Stream(IterableDataset):
    def __iter__(self):
        yield from self.documents
```

## Use instead
```python
class Stream(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        number, count = (worker.id, worker.num_workers) if worker else (0, 1)
        shard = self.rank * count + number
        yield from itertools.islice(self.documents, shard, None, self.world_size * count)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.objects.members import default
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.reading import NEW_PROCESSES, UNREAD
from ddpdoctor.lint.engine.interpreter.tree import Called, Event, Loop, Seq, Step, events
from ddpdoctor.lint.engine.interpreter.values import NONE, Term
from ddpdoctor.lint.engine.queries.order import asked_too_early, beyond
from ddpdoctor.lint.engine.queries.sharding import (
    LOADER,
    is_dealt_out,
    is_stream,
    made,
    numbers,
    prepared,
    shards,
)
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP215", name="iterable-not-sharded", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield loaders over streams that are not dealt out."""
    if not any(True for _ in events(run.root, "wrap")):
        return
    yield from _dealt_out_again(run)
    theirs = prepared(run)
    for number, loader in made(run, LOADER).items():
        if number in theirs or "rest" in loader.values or not is_stream(run, loader):
            continue
        name = _class(run, loader)
        work = run.vm.workers[loader]
        asks = next((event for event, _ in events(work, "ask_worker")), None)
        twice = next((event for event, _ in events(work, "numbered_twice")), None)
        if asks is not None and twice is not None:
            yield Hit(
                twice.node,
                f"workers of two ranks come to one number: they read the same of `{name}`",
                notes=(Related.at(loader.place, "its loader is made"),),
                help="count the workers of all ranks: rank * num_workers + id of so many",
                path=twice.path,
            )
            continue
        if any(True for _ in events(work, UNREAD)):  # it may ask further down than it was followed
            continue
        in_group = next((event for event, _ in events(work, "ask")), None)
        if _begins_anew(loader) and in_group is not None and not is_dealt_out(run, loader):
            yield Hit(
                in_group.node,
                f"this is never true in the workers that read `{name}`: every rank reads all",
                notes=(Related.at(loader.place, "they begin as new processes, in no group"),),
                help="ask for the rank where the dataset is made, and hand it on",
                path=in_group.path,
            )
        elif not is_dealt_out(run, loader) and (early := _asks_too_early(run, name)):
            made_here, asked, join = early
            yield Hit(
                made_here.node,
                f"`{name}` asks for its rank before there is a group: every rank reads all of it",
                notes=(
                    Related.at(asked.place, "it is told that there is none"),
                    Related.at(join.place, "the group is joined"),
                ),
                help="join the process group first, then make the dataset",
                path=made_here.path,
            )
        elif not is_dealt_out(run, loader) and asks is not None:
            yield Hit(
                asks.node,
                f"`{name}` is dealt out to the workers of a loader alone: every rank reads all",
                notes=(Related.at(loader.place, "its loader is made"),),
                help="count the workers of all ranks: rank * num_workers + id of so many",
                path=asks.path,
            )
        elif not is_dealt_out(run, loader):
            yield Hit(
                loader.node,
                f"every rank reads all of `{name}`: the stream does not ask for its rank",
                help="yield only every world_size-th sample, from the rank's own on",
                path=loader.path,
            )
        elif asks is None and _has_workers(run, loader) and not _draws_its_own(work):
            yield Hit(
                loader.node,
                f"every worker reads all of `{name}`'s shard: samples come once per worker",
                notes=_read_at(work),
                help="shard by get_worker_info() too",
                path=loader.path,
            )


def _dealt_out_again(run: Run) -> Iterator[Hit]:
    """Loaders of a rank's own part that accelerate deals out as if they were of all samples."""
    loaders, sharded = made(run, LOADER), shards(run)
    for event, _ in events(run.root, "prepare_loader"):
        if not event.name.startswith("accelerate."):
            continue
        for number in numbers(event.values["object"]):
            loader = loaders.get(number)
            if loader is None or "rest" in loader.values:
                continue
            if number not in sharded and not (is_stream(run, loader) and is_dealt_out(run, loader)):
                continue
            yield Hit(
                event.node,
                "accelerate deals out again what is this rank's part already: some is never read",
                notes=(Related.at(loader.place, "its loader is made, of the rank's own samples"),),
                help="hand prepare() a loader of all samples, or leave this one out of it",
                path=event.path,
            )


def _asks_too_early(run: Run, name: str) -> tuple[Called, Event, Event] | None:
    """The call that leads to its question for a group, the question, and the joining after it."""
    for asked, way, join, to in asked_too_early(run):
        calls = [step.node for step in way if isinstance(step.node, Called)]
        if any(each.name == f"{name}.__init__" for each in calls):
            apart = beyond(way, to)
            return next(each for each in calls if any(s.node is each for s in apart)), asked, join
    return None


def _begins_anew(loader: Event) -> bool:
    return loader.values.get("start", NONE).is_const(*NEW_PROCESSES)


def _class(run: Run, loader: Event) -> str:
    for number in numbers(loader.values.get("dataset")):
        cls = run.vm.objects[number].cls
        if cls >= 0:
            return run.vm.classes[cls].name
    return "the stream"


def _has_workers(run: Run, loader: Event) -> bool:
    """Whether there are several, by what is written or unless the command line says otherwise."""
    given = loader.values.get("num_workers", NONE)
    workers = (default(run.vm, given) or given).constant
    return isinstance(workers, int) and workers > 1


def _draws_its_own(work: Seq) -> bool:
    """Whether samples are drawn, and not gone through: each worker has seeds of its own."""
    drawn = any(
        event.name.rpartition(".")[2] not in _ORDERING and "generator" not in event.values
        for event, _ in events(work, "draw", "draw_python", "draw_numpy")
    )
    ways = [way for _, way in events(work, "yielded")] if drawn else []
    outer = [next((step for step in way if isinstance(step.node, Loop)), None) for way in ways]
    return drawn and all(step is None or _only_counts(step) for step in outer)


_ORDERING = ("shuffle", "randperm", "permutation")


def _only_counts(step: Step) -> bool:
    """Whether a loop goes through numbers, or on for ever."""
    content = step.begun.values["content"].what if step.begun is not None else None
    return content is None or (isinstance(content, Term) and content.op == "range")


def _read_at(work: Seq) -> tuple[Related, ...]:
    """Where a worker goes through what its samples come from."""
    for _, way in events(work, "yielded"):
        loop = next((step.node for step in way if isinstance(step.node, Loop)), None)
        if loop is not None:
            return (Related.at(loop.place, "each worker goes through all of this"),)
    return ()
