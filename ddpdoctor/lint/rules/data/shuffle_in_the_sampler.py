"""shuffle=True together with a sampler.

## What it does
Finds `DataLoader(..., shuffle=True, sampler=...)`.

## Why is this bad?
The loader raises ValueError: "sampler option is mutually exclusive with shuffle".

## Example
```python
DataLoader(data, sampler=DistributedSampler(data), shuffle=True)
```

## Use instead
```python
DataLoader(data, sampler=DistributedSampler(data, shuffle=True))
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.edits import replace
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import NONE
from ddpdoctor.lint.engine.queries.holding import facts
from ddpdoctor.lint.engine.queries.sharding import LOADER, made, numbers
from ddpdoctor.lint.engine.trees import argument
from ddpdoctor.lint.rule import About, Fix, Hit

ABOUT = About(code="DDP209", name="shuffle-with-sampler", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield loaders that are told to shuffle twice."""
    loaders = made(run, LOADER)
    for event, way in events(run.root, "new"):
        if event not in loaders.values():
            continue
        shuffle = event.values.get("shuffle", NONE)
        if not shuffle.is_const(True) and (shuffle.what, True) not in facts(way):
            continue
        given = [event.values.get(each, NONE) for each in ("sampler", "batch_sampler")]
        known = [number for each in given for number in numbers(each)]
        if not known:
            continue
        yield Hit(
            event.node,
            "shuffle=True and a sampler exclude each other: DataLoader raises ValueError",
            help="let the sampler shuffle: shuffle=False here",
            fix=_fix(run, event),
            confidence=None if len(known) == 1 else "likely",
            path=event.path,
        )


def _fix(run: Run, event: Event) -> Fix | None:
    source = run.source(event.path)
    shuffle = argument(event.node, 2, "shuffle") if isinstance(event.node, ast.Call) else None
    if source is None or not isinstance(shuffle, ast.Constant):
        return None
    return Fix((replace(source, shuffle, "False"),))
