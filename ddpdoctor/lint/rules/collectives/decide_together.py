"""Every rank decides for itself when to stop.

## What it does
Finds `break` and `return` in a training loop whose condition comes from a rank's own loss or
metric, from the clock, or from a file's existence, with nothing shared in between.

## Why is this bad?
The ranks' losses and clocks differ. One rank leaves the loop, the others wait for it in the next
all-reduce.

## Example
```python
for epoch in range(epochs):
    loss = train_epoch(ddp_model)
    if time.time() - start > budget:
        break
```

## Use instead
```python
for epoch in range(epochs):
    loss = train_epoch(ddp_model)
    stop = torch.tensor(float(time.time() - start > budget))
    dist.broadcast(stop, src=0)
    if stop:
        break
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.queries.naming import is_decided
from ddpdoctor.lint.engine.queries.partings import partings
from ddpdoctor.lint.engine.queries.raising import raised
from ddpdoctor.lint.engine.queries.telling import decides, decision
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP405", name="local-stop-decision", confidence="likely")

_WORDS = {"break": "`break`", "return": "`return`", "end": "end the process", "": "go on"}


def check(run: Run) -> Iterator[Hit]:
    """Yield exits from a loop that the ranks do not agree on."""
    for parting in partings(run):
        if parting.condition.agree.cause in ("exception", "disk", "order"):
            continue
        if parting.repeats:
            if not is_decided(parting):
                continue
        elif (
            parting.left not in ("break", "return", "end")
            or parting.by_rank
            or (parting.loop is None and parting.left == "return")
        ):
            continue
        node, path = decision(run, parting)
        yield Hit(
            node,
            f"each rank decides for itself to {_WORDS[parting.left]}: the others wait for it",
            notes=(decides(parting), *raised(run, parting)),
            why=parting.why,
            help="let rank 0 decide and broadcast, or reduce the value first",
            path=path,
        )
