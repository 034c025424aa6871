"""Samples counted on one rank, from which the sampler of all goes on.

## What it does
Finds a sampler that deals out to all ranks and begins behind the samples that a checkpoint says are
consumed, where the count grows by what one rank has read.

## Why is this bad?
After a resume the sampler begins too early: with N ranks, all but one N-th of what was read is read
again, and the rest of the epoch is never reached.

## Example
```python
progress.consumed += batch_size * accumulation
sampler = Sequential(data, start=progress.consumed, stride=batch_size * dist.get_world_size())
```

## Use instead
```python
progress.consumed += batch_size * accumulation * dist.get_world_size()
sampler = Sequential(data, start=progress.consumed, stride=batch_size * dist.get_world_size())
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Loop, events
from ddpdoctor.lint.engine.interpreter.values import WORLD, Const, Ref, Term, What, within
from ddpdoctor.lint.engine.queries.races import on_any_way
from ddpdoctor.lint.engine.queries.sharding import LOADER, made, numbers
from ddpdoctor.lint.engine.queries.wrapping import attributes
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP509", name="incomplete-resume", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield counts of one rank's samples from which the sampler of all goes on."""
    kept = list(events(run.root, "set_attribute"))
    for loader in made(run, LOADER).values():
        given = (loader.values.get(each) for each in ("sampler", "batch_sampler", "dataset"))
        for sampler in (Ref(number) for each in given for number in numbers(each)):
            starts = _starts(run, sampler)
            counts = {
                (each.values["owner"].what, each.name)
                for each, _ in kept
                if each.values["value"].what in starts
            }
            strides = _strides(run, sampler) if counts else []
            for each, way in kept:
                by = _added(each.values["value"].what)
                if by is None or (each.values["owner"].what, each.name) not in counts:
                    continue
                parts = set(_factors(by))
                is_of_one = WORLD not in parts and any(stride & parts for stride in strides)
                if is_of_one and any(isinstance(step.node, Loop) for step in way):
                    yield Hit(
                        each.node,
                        "this counts the samples of one rank, and all ranks go on behind so many",
                        notes=(Related.at(loader.place, "what is read begins behind them"),),
                        help="multiply what is added by the number of ranks",
                        path=each.path,
                    )
                    return


def _starts(run: Run, sampler: Ref) -> set[What]:
    """What of a checkpoint says where a sampler of the user's begins to count."""
    over = (each.values["over"].what for each, _ in events(run.root, "iterate"))
    begins = {each.args[0] for each in over if isinstance(each, Term) and each.op == "range"}
    held = attributes(run).get(sampler, {}).values()
    return {
        part.what
        for each in held
        if each.what in begins
        for part in on_any_way(run, each)
        if any(isinstance(x, Term) and x.op == "loaded" for x in within(part.what))
    }


def _strides(run: Run, sampler: Ref) -> list[set[What]]:
    """Of each number that a sampler multiplies by that of ranks: what it multiplies."""
    held = (set(_factors(each.what)) for each in attributes(run).get(sampler, {}).values())
    return [each - {WORLD, Const(1)} for each in held if WORLD in each]


def _factors(what: What) -> Iterator[What]:
    if isinstance(what, Term) and what.op == "Mult":
        for each in what.args:
            yield from _factors(each)
    else:
        yield what


def _added(what: What) -> What | None:
    """What is added to something in each round."""
    return what.args[1] if isinstance(what, Term) and what.op == "Add" else None
