"""A rank's own sum over the number of all samples.

## What it does
Finds a sum over the batches of a loader with a distributed sampler that is divided by the length of
the whole data set, and printed, where nothing sums it over the ranks. And one that is summed over
the ranks, which makes the mean of it, and then divided by their number as well.

## Why is this bad?
Each rank has added up its own share, and divides by the number of samples that all ranks have seen
together: with four ranks the printed loss, or accuracy, is a quarter of what it is.

## Example
```python
for x, y in loader:  # with a DistributedSampler
    total += loss_of(x, y).item() * len(y)
print(total / len(loader.dataset))
```

## Use instead
```python
for x, y in loader:
    sums += torch.stack([loss_of(x, y).detach() * len(y), torch.tensor(len(y))])
dist.all_reduce(sums)
print(sums[0] / sums[1])
```
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from ddpdoctor.lint.engine.interpreter.machine import Made
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import WORLD, Tensor, Term, Value, What, within
from ddpdoctor.lint.engine.queries.reducing import is_averaged
from ddpdoctor.lint.engine.queries.sharding import LOADER, made, passes, shards
from ddpdoctor.lint.engine.queries.wrapping import computed_from, origins
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP214", name="metric-not-reduced", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield the means of a rank's own sum over all samples that are printed."""
    sharded, loaders = shards(run), made(run, LOADER)
    data = {
        given.what: number
        for number in sharded
        if (given := loaders[number].values.get("dataset")) is not None
    }
    if not data:
        return
    told: set[int] = set()
    for what, how in list(run.vm.made.items()):
        if how.by not in ("Div", "div") or len(how.of) < 2 or id(how.node) in told:
            continue
        total, counted = how.of[0], _counted(run, how.of[1].what)
        number = data.get(counted) if counted is not None else None
        if number is None or total.agree.cause not in ("data", "shard"):
            continue
        averaged = _averaged(run, what)
        if not _is_read_from(run, total, number):
            continue
        if averaged is None and (_is_shared(run, what, how) or _is_for_all(run, what, total)):
            continue
        if _is_printed(run, what, how.order):
            told.add(id(how.node))
            yield Hit(
                how.node,
                "this rank's own sum is divided by the number of all samples: 1/N of the mean",
                notes=(
                    Related.at(loaders[number].place, "each rank has its part of them"),
                    *((Related.at(averaged.place, "ranks average it"),) if averaged else ()),
                ),
                help="sum the total over the ranks first, or divide by what this rank has counted",
                path=how.path,
            )


def _counted(run: Run, number: What) -> What | None:
    """What a number is the length of."""
    if not isinstance(number, Term):
        return None
    told = run.vm.lengths.get(number)  # by an object that says how long what it holds is
    if told is None and number.op == "len" and len(number.args) == 1:
        return cast(What, number.args[0])
    return told


def _is_read_from(run: Run, total: Value, loader: int) -> bool:
    """Whether a sum is over what comes from a loader."""
    if total.why is None:
        return False
    place = total.why.root.place
    through = (each.event.place for each in passes(run) if loader in each.loaders)
    return any((place.path, place.line) == (each.path, each.line) for each in through)


def _is_shared(run: Run, what: What, how: Made) -> bool:
    """Whether ranks put their means together afterwards, or what the mean is made of."""
    parts = {what, how.of[0].what}
    return any(
        each.what in parts
        for event, _ in events(run.root, "collective")
        for value in event.values.values()
        for each in origins(run, value)
    )


def _averaged(run: Run, what: What) -> Event | None:
    """Where ranks put their means together, and divide the sum of these by their number."""
    for event, _ in events(run.root, "collective"):
        shared = event.values.get("shares")
        if shared is not None and any(each.what == what for each in origins(run, shared)):
            return event if is_averaged(run, event) else None
    return None


def _is_for_all(run: Run, what: What, total: Value) -> bool:
    """Whether a sum, or its mean, is taken as often as there are ranks."""
    made_of = [how for _, how in computed_from(run, total)]
    made_of += [how for how in run.vm.made.values() if any(x.what == what for x in how.of)]
    return any(WORLD in set(within(each.what)) for how in made_of for each in how.of)


def _is_printed(run: Run, what: What, since: int) -> bool:
    """Whether it is printed afterwards, or what is computed from it."""
    return any(
        event.order >= since
        and any(
            each.what == what
            for value in event.values.values()
            for part in within(value.what)
            if isinstance(part, Tensor | Term)
            for each in origins(run, Value(part))
        )
        for event, _ in events(run.root, "print")
    )
