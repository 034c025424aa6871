"""Workers that never hear of the epoch.

## What it does
Finds a loader with `persistent_workers=True` of whose data set something is set anew in every
epoch, such as the epoch itself, that its workers go by.

## Why is this bad?
A worker has a copy of the data set, as it was when the worker was started. Persistent ones are
started once: what is set in the training process later never reaches them, and each epoch has the
order of the first, of which each rank sees the same part.

## Example
```python
loader = DataLoader(documents, num_workers=4, persistent_workers=True)
for epoch in range(epochs):
    documents.set_epoch(epoch)
    for batch in loader:
        ...
```

## Use instead
```python
loader = DataLoader(documents, num_workers=4)
for epoch in range(epochs):
    documents.set_epoch(epoch)
    for batch in loader:
        ...
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.objects import hierarchy
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import NONE, Ref, Term, within
from ddpdoctor.lint.engine.queries.sharding import LOADER, begun_again, made, numbers, passes
from ddpdoctor.lint.engine.trees import keyword
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP203", name="missing-set-epoch", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield loaders whose workers keep what the data set was in the first epoch."""
    kept = {n: each for n, each in made(run, LOADER).items() if _are_kept(each)}
    told: set[int] = set()
    for each in (*passes(run), *begun_again(run)) if kept else ():
        again = [loop for loop in each.outer if loop.rounds != 1]
        for number in each.loaders & kept.keys() - told if again and each.trains else ():
            loader, epochs = kept[number], again[-1]
            if any(one is loader for one, _ in events(epochs.body, "new")):
                continue  # each epoch has workers of its own
            inside = {id(one) for one, _ in events(epochs.body, "set_attribute")}
            data = numbers(loader.values.get("dataset"))
            for event, _ in events(run.root, "set_attribute"):
                owner = event.values["owner"].what
                if id(event) not in inside or not isinstance(owner, Ref):
                    continue
                if owner.number in data and _goes_by(run, owner, event.name):
                    told.add(number)
                    yield Hit(
                        _written(loader) or loader.node,
                        "persistent workers keep the data set that they were started with: what "
                        "each epoch sets never reaches them",
                        notes=(Related.at(event.place, "it is set in this process alone"),),
                        help="leave persistent_workers out, or share the number with the workers",
                        path=loader.path,
                    )
                    break


def _written(loader: Event) -> ast.expr | None:
    call = loader.node
    return keyword(call, "persistent_workers") if isinstance(call, ast.Call) else None


def _are_kept(loader: Event) -> bool:
    """Whether workers live on, where there are any."""
    kept = loader.values.get("persistent", NONE)
    workers = loader.values.get("num_workers", NONE)
    return kept.is_const(True) or (
        isinstance(kept.what, Term)
        and isinstance(workers.what, Term)
        and workers.what in within(kept.what)
    )


def _goes_by(run: Run, data: Ref, name: str) -> bool:
    """Whether a data set of the user's reads this of itself."""
    cls = run.vm.objects[data.number].cls
    return any(
        isinstance(each, ast.Attribute) and each.attr == name and isinstance(each.ctx, ast.Load)
        for base in hierarchy.bases(run.vm, cls)
        for each in ast.walk(run.vm.classes[base].node)
    )
