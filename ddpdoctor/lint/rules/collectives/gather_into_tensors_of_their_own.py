"""A list of outputs that is one tensor many times.

## What it does
Finds collectives that write into a list made as `[tensor] * n`, or of one name again and again.

## Why is this bad?
All elements are the same tensor: each rank's part overwrites the one before, and what is read is
the last part n times. Nothing fails.

## Example
```python
parts = [torch.zeros_like(x)] * dist.get_world_size()
dist.all_gather(parts, x)
```

## Use instead
```python
parts = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
dist.all_gather(parts, x)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.objects.containers import ALIASED
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import events
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP420", name="aliased-outputs", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield the lists that hold one tensor again and again, and are gathered into."""
    for event, _ in events(run.root, "collective"):
        if "object" in event.name:
            continue  # elements that are no tensors are replaced, not overwritten
        for role in ("shares", "fills"):
            outputs = event.values.get(role)
            made = run.vm.object(outputs) if outputs is not None else None
            if made is None or outputs is None or made.type != "list":
                continue
            if run.vm.store.get((outputs.what, ALIASED)) is None:
                continue
            yield Hit(
                made.node,
                f"every element of this list is the same tensor: {event.name}() overwrites it "
                "again and again",
                help="make one tensor for each rank: `[torch.zeros_like(x) for _ in range(n)]`",
                path=made.path,
                notes=(Related.at(event.place, f"{event.name}() fills it"),),
            )
