"""A refresh from a checkpoint that each rank decides on.

## What it does
Finds an `if` on a rank's own loss, metric or clock whose body reloads a checkpoint and meets the
other ranks in a collective.

## Why is this bad?
The ranks' losses differ: one goes into the refresh and waits in its barrier, the others go on to
the next step's all-reduce. The two pair, or hang.

## Example
```python
if loss > best:
    refresh_from_ema()  # save, barrier, load
```

## Use instead
```python
total = torch.tensor(loss)
dist.all_reduce(total)
if total.item() > best:
    refresh_from_ema()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.queries.naming import name_of
from ddpdoctor.lint.engine.queries.partings import partings
from ddpdoctor.lint.engine.queries.telling import decides, decision
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP505", name="rank-divergent-refresh", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield the refreshes that hang on a rank's own metric."""
    for parting in partings(run):
        if name_of(run, parting) != ABOUT.code:
            continue
        node, path = decision(run, parting)
        yield Hit(
            node,
            "the ranks do not agree on when to refresh: some wait where others never come",
            notes=(decides(parting),),
            why=parting.why,
            help="reduce the metric (or broadcast the decision) before the branch",
            path=path,
        )
