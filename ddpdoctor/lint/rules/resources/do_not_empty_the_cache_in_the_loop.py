"""empty_cache in the step loop.

## What it does
Finds `torch.cuda.empty_cache()` in a loop that trains.

## Why is this bad?
Live tensors stay where they are; what is freed must be asked of the driver again at the next step,
which synchronises the device. Steps get slower, the leak stays.

## Example
```python
for batch in loader:
    train_step(batch)
    torch.cuda.empty_cache()
```

## Use instead
```python
for batch in loader:
    train_step(batch)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Loop, Way, events
from ddpdoctor.lint.engine.queries.sharding import of_many_ranks
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP602", name="empty-cache-as-cure", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield empty_cache calls between training steps."""
    if not of_many_ranks(run):
        return
    trained = {id(loop) for _, way in events(run.root, "backward") if (loop := _steps(way))}
    for event, way in events(run.root, "empty_cache"):
        loop = _steps(way)
        if loop is None or id(loop) not in trained or _is_rare(way, loop):
            continue
        yield Hit(
            event.node,
            "empty_cache() in every step slows training and frees nothing that is in use",
            help="remove it, and the reference that keeps the memory",
            path=event.path,
        )


def _steps(way: Way) -> Loop | None:
    return next((step.node for step in reversed(way) if isinstance(step.node, Loop)), None)


def _is_rare(way: Way, loop: Loop) -> bool:
    """Whether a condition or a handler stands between the loop and it."""
    depth = next(number for number, step in enumerate(way) if step.node is loop)
    return any(isinstance(step.node, Choice) for step in way[depth:])
