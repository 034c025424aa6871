"""Training loader without a sampler.

## What it does
Finds a `DataLoader` without a sampler whose batches are trained on with DDP, where nothing in its
data set's reading asks for the rank.

## Why is this bad?
Every rank reads the whole set: N times the work for no speed-up, and where the order is shared, N
identical gradients.

## Example
```python
loader = DataLoader(data, batch_size=32, shuffle=True)
for batch in loader:
    ddp_model(batch).sum().backward()
```

## Use instead
```python
loader = DataLoader(data, batch_size=32, sampler=DistributedSampler(data))
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import EVERYONE, NONE, Ref, Term, text
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.sharding import (
    LOADER,
    is_dealt_out,
    is_stream,
    made,
    numbers,
    passes,
    shards,
)
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP202", name="no-sampler", confidence="likely")

_GIVEN = ("sampler", "batch_sampler", "generator")
_OWN_PART = re.compile(r"rank|shard|iterable|stream|split|replica|local|partition", re.I)


def check(run: Run) -> Iterator[Hit]:
    """Yield training loaders that every rank reads in full."""
    if not any(True for _ in events(run.root, "wrap")):
        return
    loaders, dealt = made(run, LOADER), set(shards(run))
    for event, _ in events(run.root, "prepare_loader"):
        dealt |= numbers(event.values["object"])
    told: set[int] = set()
    for each in passes(run):
        if not each.trains or each.loaders & dealt or doers(each.way).mask != EVERYONE:
            continue
        if not each.loaders <= loaders.keys() or any(
            _is_given(loaders[number]) for number in each.loaders
        ):
            continue
        for number in sorted(each.loaders - told):
            loader = loaders[number]
            if is_stream(run, loader) or is_dealt_out(run, loader) or _sounds_dealt_out(loader):
                continue
            told.add(number)
            yield Hit(
                loader.node,
                "every rank reads the whole dataset: this training loader has no sampler",
                notes=(f"it is trained on at line {each.event.place.line}",),
                help="sampler=DistributedSampler(dataset), and set_epoch in the loop",
                path=loader.path,
            )


def _is_given(loader: Event) -> bool:
    """Whether something may deal out the samples; a generator gives all ranks one order."""
    values = loader.values
    return "rest" in values or any(not values.get(each, NONE).is_const(None) for each in _GIVEN)


def _sounds_dealt_out(loader: Event) -> bool:
    """Whether data of which nothing is known is called a part, where it is handed over."""
    data = loader.values.get("dataset", NONE)
    if isinstance(data.what, Ref) or not isinstance(loader.node, ast.Call):
        return False
    written = text(loader.node.args[0], 500) if loader.node.args else ""
    known = repr(data.what) if isinstance(data.what, Term) else ""
    return bool(_OWN_PART.search(written) or _OWN_PART.search(known))
