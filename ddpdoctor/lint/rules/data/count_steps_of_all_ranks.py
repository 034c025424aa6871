"""Schedule that is as long as one rank's batches, and steps for all ranks.

## What it does
Finds learning rate schedules that accelerate prepares and whose length is computed from the length
of a prepared loader, or is the number of steps after which the training ends; and a prepared
`ReduceLROnPlateau`, which is told each metric once for each process. And schedules that step with
each batch of a sharded loader, and count the batches of the whole data set.

## Why is this bad?
A prepared scheduler steps once for each process at every optimizer step, as though the batches were
not shared out. One that counts a single rank's batches is over after the first part of the
training, and the learning rate stays where it ends. One that counts the batches of all ranks has
come a Nth of the way when the training ends, and the learning rate never falls.

## Example
```python
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
scheduler = CosineAnnealingLR(optimizer, T_max=epochs * len(loader))
scheduler = accelerator.prepare(scheduler)
```

## Use instead
```python
steps = epochs * len(loader) * accelerator.num_processes
scheduler = accelerator.prepare(CosineAnnealingLR(optimizer, T_max=steps))
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from ddpdoctor.lint.engine.interpreter.library.facts import PREPARED
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Loop, events, walk
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    WORLD,
    Const,
    Func,
    Term,
    Tuple,
    Value,
    What,
    within,
)
from ddpdoctor.lint.engine.libraries.torch import COMPARISONS
from ddpdoctor.lint.engine.queries.partings import leaves
from ddpdoctor.lint.engine.queries.sharding import LOADER, made, passes, shards
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP211", name="batch-size-meaning", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield prepared schedules that count the batches of one rank."""
    yield from _of_all(run)
    told: set[int] = set()
    by_metric = {
        event.values["object"].what
        for event, _ in events(run.root, "schedule")
        if "metric" in event.values and "object" in event.values
    }
    for event, _ in events(run.root, "prepare_scheduler"):
        if _is_of_patience(run, event) and event.values["object"].what in by_metric:
            yield Hit(
                event.node,
                "this scheduler is told each metric once for each rank: its patience runs out "
                "as many times too soon",
                notes=("a prepared scheduler steps num_processes times at every call",),
                help="do not prepare it, or make Accelerator(step_scheduler_with_optimizer=False)",
                path=event.path,
            )
            continue
        given = run.vm.store.get((event.values["object"].what, "#given"))
        if given is None or id(event.node) in told:
            continue
        lengths = [each.what for each in _lengths(run, given)]
        counts = [part for each in lengths for part in within(each)]
        of_one = any(isinstance(part, Term) and part.args[1:] == (PREPARED,) for part in counts)
        if WORLD not in counts and (of_one or not _bounds(run).isdisjoint(lengths)):
            told.add(id(event.node))
            yield Hit(
                event.node,
                "the schedule counts one rank's batches, and steps once for each rank",
                notes=("a prepared scheduler steps num_processes times per optimizer step",),
                help="multiply its length by accelerator.num_processes, or do not prepare it",
                path=event.path,
            )


def _is_of_patience(run: Run, prepared: Event) -> bool:
    return run.vm.type_of(prepared.values["object"]).endswith("ReduceLROnPlateau")


def _of_all(run: Run) -> Iterator[Hit]:
    """Schedules that count the whole data set's batches, of which a rank steps through a part."""
    loaders = made(run, LOADER)
    sharded = {number: loaders[number] for number in shards(run)}
    told: set[What] = set()
    for event, way in events(run.root, "schedule", "set_item") if sharded else ():
        given, schedule = event.values.get("given"), event.values.get("key", NONE).what
        if event.kind == "schedule":
            schedule = event.values["object"].what
            given = run.vm.store.get((schedule, "#given"))
        around = [step.begun for step in way if isinstance(step.node, Loop)]
        through = {n for each in passes(run) if each.event in around for n in each.loaders}
        if given is None or schedule in told:
            continue
        lengths = [part for each in _lengths(run, given) for part in within(each.what)]
        for loader in (sharded[number] for number in through & sharded.keys()):
            count = next((each for each in lengths if _is_whole(each, loader, run)), None)
            if count is None or WORLD in lengths or any(_divides(each, count) for each in lengths):
                continue
            told.add(schedule)
            node, path = run.vm.divided.get(count, (event.node, event.path))
            yield Hit(
                node,
                "the schedule counts the batches of the whole data set, and each rank steps "
                "through its part alone",
                notes=(Related.at(event.place, "it steps with each batch of the rank"),),
                help="count the loader's batches, or divide by the number of ranks",
                path=path,
            )
            break


def _is_whole(count: object, loader: Event, run: Run) -> TypeGuard[Term]:
    """Whether it is the data set's length divided by the loader's batch, and by nothing else."""
    data = loader.values.get("dataset")
    if data is None or not isinstance(count, Term) or count.op not in _DIVIDED:
        return False
    left, by = count.args
    return by in _batch_sizes(loader) and any(
        (isinstance(each, Term) and each.op == "len" and each.args[0] == data.what)
        or (isinstance(each, What) and run.vm.lengths.get(each) == data.what)
        for each in within(left)
    )


def _batch_sizes(loader: Event) -> Iterator[What]:
    """What a loader is told that a batch holds, by name or in a section of its settings."""
    if (size := loader.values.get("batch_size")) is not None:
        yield size.what
    rest = loader.values.get("rest")
    what = rest.what if rest is not None else None
    while isinstance(what, Term) and what.op == "call" and what.args[0] == "copy":
        what = what.args[1]
    if isinstance(what, Term):
        yield from (Term("of", (what, "batch_size")), Term("item", (what, Const("batch_size"))))


_DIVIDED = ("Div", "FloorDiv")


def _divides(what: object, count: Term) -> bool:
    """Whether a count is divided by something else again, which may be the number of ranks."""
    if not isinstance(what, Term) or what.op not in _DIVIDED or what == count:
        return False
    return not isinstance(what.args[1], Const) and count in within(what.args[0])


def _lengths(run: Run, value: Value) -> Iterator[Value]:
    """What a schedule is given, and what its functions know from where they were made."""
    if isinstance(value.what, Tuple):
        for each in value.what.items:
            yield from _lengths(run, each)
    elif isinstance(value.what, Func):
        info = run.vm.functions[value.what.number]
        names = {each.id for each in ast.walk(info.node) if isinstance(each, ast.Name)}
        for scope in value.what.scopes:
            found = (run.vm.store.get((scope, name)) for name in sorted(names))
            yield from (each for each in found if each is not None)
    else:
        yield value


def _bounds(run: Run) -> set[What]:
    """What the number of steps is compared with before a loop is left."""
    found: set[What] = set()
    for node, _ in walk(run.root):
        what = node.condition.what if isinstance(node, Choice) else None
        if isinstance(what, Term) and what.op == "not":
            (what,) = what.args
        if isinstance(what, Term) and what.op in COMPARISONS and isinstance(node, Choice):
            left = (leaves(arm.body) for arm in node.arms)
            if any(each is not None and each.kind == "break" for each in left):
                found |= {each for each in what.args if isinstance(each, Term)}
    return found
