"""A collective inside Join.

## What it does
Finds collectives of one's own in the body of `with Join([...]):`, `with model.join():` or
accelerate's `join_uneven_inputs`. One that stands there before any loop is answered by all: nobody
has run out of data yet.

## Why is this bad?
Join answers for the ranks that have run out of data only what the joined objects communicate: the
gradients of DDP. A collective of one's own is answered by nobody: it waits, or pairs with an
all-reduce of another meaning.

## Example
```python
with Join([model]):
    for x, y in batches:
        loss = step(model, x, y)
        dist.all_reduce(loss)
```

## Use instead
```python
with Join([model]):
    for x, y in batches:
        total += step(model, x, y).detach()
dist.all_reduce(total)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Loop, walk
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP422", name="collective-inside-join", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield the collectives that a rank without data does not answer."""
    are_there = True
    for each, _ in walk(run.root):
        if isinstance(each, Loop):
            are_there = False
        if not isinstance(each, Event):
            continue
        if each.kind == "enter" and "join" in each.name.split():
            are_there = True
        elif each.kind == "collective" and "join" in each.scopes and not are_there:
            yield Hit(
                each.node,
                f"{each.name}() inside Join: ranks that have run out of data do not answer it",
                help="call it after the block, or pass throw_on_early_termination=True",
                path=each.path,
            )
