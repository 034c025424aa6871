"""The batch of one rank taken for that of all, or the reverse.

## What it does
Finds loaders whose `batch_size` is called global although each rank has its own loader; and scripts
that divide the batch size by the number of ranks and multiply the learning rate by it.

## Why is this bad?
N ranks with the global batch each make a batch that is N times as large, and N times fewer steps.
Where the batch is divided, the global batch is the one that was given, and a learning rate times N
is N times what belongs to it.

## Example
```python
loader = DataLoader(data, batch_size=batch_size // world_size, sampler=sampler)
optimizer = SGD(model.parameters(), lr=lr * world_size)
```

## Use instead
```python
loader = DataLoader(data, batch_size=batch_size // world_size, sampler=sampler)
optimizer = SGD(model.parameters(), lr=lr)
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import NONE, WORLD, Term, Value, text, within
from ddpdoctor.lint.engine.queries.sharding import LOADER, made, shards
from ddpdoctor.lint.engine.trees import argument, dotted
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP211", name="batch-size-meaning", confidence="likely")

_GLOBAL = re.compile(r"(^|_)(global|total|effective)_?batch", re.I)
_RANKS = re.compile(r"world_?size|num_(gpus|replicas|processes)|n_?gpus", re.I)


def check(run: Run) -> Iterator[Hit]:
    """Yield batches and learning rates that are counted once too often."""
    sharded = shards(run)
    divided: list[Event] = []
    for number, event in made(run, LOADER).items():
        size = event.values.get("batch_size", NONE)
        if _by_ranks(size, "FloorDiv", "Div"):
            divided.append(event)
        written = _written(event, "batch_size")
        given = not event.values.get("sampler", NONE).is_const(None)
        if written is None or not (number in sharded or given) or _by_ranks(size):
            continue
        if _GLOBAL.search(dotted(written)):
            yield Hit(
                written,
                f"`{text(written)}` is given to the loader of each rank: "
                "the global batch is larger",
                help="divide it by the number of ranks",
                path=event.path,
            )
    for event, _ in events(run.root, "new") if divided else ():
        rate = event.values.get("lr")
        if rate is None or not _by_ranks(rate, "Mult"):
            continue
        sizes = [each.values["batch_size"] for each in divided]
        if any(size.what in within(rate.what) for size in sizes):
            continue  # what is multiplied is the batch of one rank: the product is the global one
        written = _written(event, "lr")
        yield Hit(
            written or event.node,
            "the learning rate is multiplied by the number of ranks, the batch divided by it",
            notes=(Related.at(divided[0].place, "the batch is divided"),),
            help="scale the learning rate by the global batch alone",
            path=event.path,
        )


def _written(event: Event, name: str) -> ast.expr | None:
    return argument(event.node, 1, name) if isinstance(event.node, ast.Call) else None


def _by_ranks(value: Value, *operations: str) -> bool:
    """Whether the number of ranks is an operand somewhere in it, of one of these operations."""
    return any(
        isinstance(part, Term)
        and (part.op in operations or not operations)
        and any(_is_ranks(each) for each in part.args)
        for part in within(value.what)
    )


def _is_ranks(what: object) -> bool:
    """Whether this is how many ranks there are; of a parameter that nobody gives, by its name."""
    if isinstance(what, Term) and what.op == "parameter":
        return _RANKS.search(str(what.args[-1])) is not None
    return what == WORLD
