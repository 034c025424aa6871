"""Another sampler seed on every rank.

## What it does
Finds `DistributedSampler(seed=...)` with a seed that contains the rank, and a sampler of your own
that shuffles by such a seed before it takes the rank's part. And draws of some ranks alone, as for
a preview on rank 0, from the generator by which all then shuffle what they take their part of.

## Why is this bad?
Each rank shuffles in its own way and then takes every n-th sample: the shards overlap, and about a
third of the data is never seen at 4 ranks.

## Example
```python
DistributedSampler(data, seed=seed + rank)
```

## Use instead
```python
DistributedSampler(data, seed=seed)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.library.events import APART
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import (
    IS_MAIN,
    LOCAL_RANK,
    NONE,
    RANK,
    Place,
    Term,
    Value,
    What,
)
from ddpdoctor.lint.engine.queries.sharding import LOADER, SAMPLER, deals, dealt, made
from ddpdoctor.lint.engine.queries.wrapping import computed_from
from ddpdoctor.lint.engine.trees import argument
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP204", name="sampler-seed-per-rank", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield samplers whose seed depends on the rank."""
    for event in made(run, SAMPLER).values():
        seed = event.values.get("seed")
        if seed is None or not seed.agree.divergent:
            continue
        if event.values.get("num_replicas", NONE).is_const(1):
            continue  # all ranks go through all of it: no shards that could overlap
        written = argument(event.node, 4, "seed") if isinstance(event.node, ast.Call) else None
        yield Hit(
            written or event.node,
            "the sampler's seed differs between ranks: the shards overlap and samples are lost",
            why=seed.why,
            help="one seed for all ranks; a per-rank generator is for noise alone",
            confidence=None if seed.agree.sure else "likely",
            path=event.path,
        )
    yield from _dealt_out(run)
    yield from _shuffled_before(run)
    yield from _drawn_by_some(run)


def _drawn_by_some(run: Run) -> Iterator[Hit]:
    """Draws of some ranks alone, after which they shuffle in another way than the others."""
    told: set[int] = set()
    for deal in deals(run):
        why = deal.order.why.root if deal.order.why else None
        if why is None or why.text != APART or why.node is None or id(why.node) in told:
            continue
        told.add(id(why.node))
        yield Hit(
            why.node,
            "only some ranks draw here: then all shuffle in another way, and take their part of it",
            notes=(Related.at(deal.event.place, "the part is taken"),),
            help="draw from a generator of its own here, or shuffle with one",
            confidence="likely",
            path=why.place.path,
        )


def _shuffled_before(run: Run) -> Iterator[Hit]:
    """Data sets that each rank shuffles by a seed of its own, and of which it gets a part."""
    told: set[int] = set()
    loaders = made(run, LOADER)
    for number in sorted(dealt(run) & loaders.keys()):
        for _, how in computed_from(run, loaders[number].values.get("dataset", NONE)):
            seed = next((each for each in how.of[1:] if each.agree.kind == "rank"), None)
            if how.by != "shuffle" or seed is None or id(how.node) in told:
                continue
            told.add(id(how.node))
            yield Hit(
                how.node,
                "the order is shuffled by a seed of the rank's own: the parts overlap, others are "
                "lost",
                notes=(Related.at(loaders[number].place, "each rank gets its part of this"),),
                why=seed.why,
                help="one seed for all ranks; a per-rank generator is for noise alone",
                confidence="likely",
                path=how.path,
            )


def _dealt_out(run: Run) -> Iterator[Hit]:
    """Orders that each rank shuffles by a seed of its own before it takes its part."""
    told: set[Place] = set()
    for deal in deals(run):
        if deal.seed is None or deal.seed.place in told:
            continue
        told.add(deal.seed.place)
        seed = deal.seed.values["seed"]
        at = _given(run, seed) or deal.seed
        node, path = (at.node, at.path) if at is not deal.seed else _mixed(run, seed.what, at)
        yield Hit(
            node,
            "the order is shuffled by a seed of the rank's own: the parts overlap, others are lost",
            notes=(Related.at(deal.event.place, "the part is taken"),),
            why=seed.why,
            help="one seed for all ranks; a per-rank generator is for noise alone",
            confidence="likely",
            path=path,
        )


def _mixed(run: Run, seed: What, at: Event) -> tuple[ast.AST, str]:
    """Where the rank went into a seed; where it is used, if that was not seen."""
    known = run.vm.by_rank
    inner = seed.args if isinstance(seed, Term) and seed not in known else (seed,)
    return next((known[each] for each in inner if each in known), (at.node, at.path))


def _given(run: Run, seed: Value) -> Event | None:
    """The making of the last object that was given the seed, and holds it."""
    for event, _ in reversed(list(events(run.root, "make"))):
        for each in run.vm.store.of(event.values["object"].what).values():
            is_number = each.agree.kind == "rank" and each.what not in (RANK, LOCAL_RANK, IS_MAIN)
            if is_number and each.why is not None and each.why.root == (seed.why and seed.why.root):
                return event
    return None
