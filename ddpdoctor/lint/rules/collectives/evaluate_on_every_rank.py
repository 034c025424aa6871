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
from ddpdoctor.lint.engine.queries.partings import Met, partings
from ddpdoctor.lint.engine.queries.telling import chain, how, where
from ddpdoctor.lint.engine.queries.wrapping import has_no_buffers
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP406", name="rank0-only-evaluation", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield the forwards that only some ranks run."""
    for parting in partings(run):
        if not parting.by_rank or any(each.event.kind == "backward" for each in parting.met):
            continue
        for each in parting.met:
            if each.event.kind != "forward" or _keeps_buffers_apart(run, each):
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


def _keeps_buffers_apart(run: Run, met: Met) -> bool:
    """Whether the wrapper was told not to broadcast buffers, or has none and no graph to make."""
    model = met.event.values["model"]
    told = run.vm.store.get((model.what, "#broadcast_buffers"))
    if told is not None and told.is_const(False):
        return True
    module = run.vm.store.get((model.what, "module")) or model
    return "no_grad" in met.event.scopes and has_no_buffers(run, module.what)
