"""Forward through the wrapper on some ranks only.

## What it does
Finds calls of a DDP wrapper, or of a function that calls it, under a condition on the rank.

## Why is this bad?
The wrapper's forward broadcasts buffers (batch-norm statistics) from rank 0, in `eval()` and under
`no_grad()` too, and prepares the reducer. With buffers, the rank that is alone in it waits for the
others. A model without buffers gets away with it.

## Example
```python
if rank == 0:
    accuracy = evaluate(ddp_model, loader)
```

## Use instead
```python
if rank == 0:
    accuracy = evaluate(ddp_model.module, loader)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event
from ddpdoctor.lint.engine.queries.partings import partings
from ddpdoctor.lint.engine.queries.telling import chain, how, where
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP406", name="rank0-only-evaluation", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield the forwards that only some ranks run."""
    for parting in partings(run):
        if not parting.by_rank or any(each.event.kind == "backward" for each in parting.met):
            continue
        for each in parting.met:
            if each.event.kind != "forward" or _leaves_buffers(run, each.event):
                continue
            node, path = where(parting, each)
            yield Hit(
                node,
                "the DDP wrapper runs its forward on some ranks only",
                notes=(
                    how(parting),
                    *chain(each),
                    "forward broadcasts buffers from rank 0, in eval() too; harmless without "
                    "buffers",
                ),
                help="pass the wrapper's `.module` for evaluation on one rank, or evaluate on "
                "every rank",
                path=path,
                why=parting.why,
            )
            if parting.left:
                break


def _leaves_buffers(run: Run, forward: Event) -> bool:
    """Whether the wrapper was told not to broadcast buffers."""
    told = run.vm.store.get((forward.values["model"].what, "#broadcast_buffers"))
    return told is not None and told.is_const(False)
