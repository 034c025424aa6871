"""Ranks that may run different collectives.

## What it does
Finds an `if` on the values of a tensor, with nothing reduced before it, whose two ways lead to
different collectives; one on the rank, whose ways lead to the same in another order; and one on
whether a file is there, which some rank writes meanwhile, at which some ranks alone look, or for
which each looks in every round.

## Why is this bad?
The tensor differs between ranks, and so does the way they go: one waits in `all_gather`, the other
in `all_reduce`.

## Example
```python
if spread.max() > limit:
    dist.all_reduce(centre)
else:
    dist.all_gather(parts, features)
```

## Use instead
```python
widest = spread.max()
dist.all_reduce(widest, op=dist.ReduceOp.MAX)
if widest > limit:
    dist.all_reduce(centre)
else:
    dist.all_gather(parts, features)
```
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.naming import name_of
from ddpdoctor.lint.engine.queries.partings import Met, Parting, partings
from ddpdoctor.lint.engine.queries.races import found_meanwhile, looks_of, restores
from ddpdoctor.lint.engine.queries.raising import raised
from ddpdoctor.lint.engine.queries.telling import decides, decision, operation
from ddpdoctor.lint.engine.queries.watching import watched
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP402", name="collective-order-mismatch", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield branches on local values whose arms run different collectives."""
    for parting in partings(run):
        if parting.condition.agree.cause == "disk":
            yield from _late(run, parting)
            yield from _looked_at_by_some(run, parting)
            yield from _seen_by_one_first(run, parting)
        if name_of(run, parting) != ABOUT.code:
            continue
        if parting.instead is not None:
            yield _in_another_order(parting, parting.instead)
            continue
        node, path = decision(run, parting)
        yield Hit(
            node,
            f"ranks with other data run other collectives: {operation(parting.met[0])} on one way",
            notes=(decides(parting), *raised(run, parting)),
            why=parting.why,
            help="decide on a reduced value, or run the same collectives on both ways",
            path=path,
        )


def _in_another_order(parting: Parting, other: Met) -> Hit:
    """The same collectives on both ways, in another order."""
    one = parting.met[0]
    return Hit(
        parting.test,
        f"some ranks come to {operation(one)} where the others come to {operation(other)}",
        notes=(
            Related.at(one.event.place, "some come here"),
            Related.at(other.event.place, "the others come here"),
        ),
        why=parting.why,
        help="call the same collectives in the same order on every rank",
        confidence="certain" if parting.sure and one.sure and other.sure else "likely",
        path=parting.path,
    )


def _looked_at_by_some(run: Run, parting: Parting) -> Iterator[Hit]:
    """What runs only where some ranks find no file, or find it, and the others run in any case."""
    looks = [] if restores(run) else list(looks_of(run, parting))
    by_some = next((look for look, way in looks if doers(way).some), None)
    if by_some is not None:
        node, path = decision(run, parting)
        met = operation(parting.met[0])
        yield Hit(
            node,
            f"some ranks alone look at this file, and by it they come to {met}, or do not",
            notes=(
                Related.at(by_some.place, "some ranks alone look"),
                Related.at(parting.met[0].event.place, f"{met} runs on one way alone"),
            ),
            help=f"take {met} out of the condition, or share what was found",
            path=path,
        )


def _seen_by_one_first(run: Run, parting: Parting) -> Iterator[Hit]:
    """What runs only in a round in which a rank finds what may come at any time."""
    look = watched(run, parting) if not parting.left and not parting.repeats else None
    if look is not None:
        node, path = decision(run, parting)
        met = operation(parting.met[0])
        yield Hit(
            node,
            f"each rank looks anew in every round: one finds it before the others, and comes to "
            f"{met} alone",
            notes=(
                Related.at(look.place, "it looks here"),
                Related.at(parting.met[0].event.place, f"{met} runs on one way alone"),
            ),
            help="let rank 0 look, and broadcast what it has found",
            path=path,
        )


def _late(run: Run, parting: Parting) -> Iterator[Hit]:
    """Looks for a file that another rank writes before all have looked."""
    for look, save in islice(found_meanwhile(run, parting), 1):
        yield Hit(
            look.node,
            f"a rank that comes late finds the file, and leaves {operation(parting.met[0])} out",
            notes=(Related.at(save.place, "another rank writes it meanwhile"),),
            help="let rank 0 look, and share what it has found, before anybody writes",
            path=look.path,
        )
