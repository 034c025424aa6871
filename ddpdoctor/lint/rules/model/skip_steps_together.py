"""A step that one rank skips.

## What it does
Finds `continue` in a training loop on a rank's own loss (a spike, a NaN) or in the handler of an
error, between the loop's beginning and the optimizer's step, with nothing shared before it.

## Why is this bad?
Before the backward the other ranks wait for this one's gradients. After it they take a step that
this one does not take: the parameters part for good.

## Example
```python
loss.backward()
if loss.item() > limit:
    continue
optimizer.step()
```

## Use instead
```python
loss.backward()
skip = torch.tensor(float(loss.item() > limit))
dist.all_reduce(skip, op=dist.ReduceOp.MAX)
if skip:
    continue
optimizer.step()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.queries.naming import name_of
from ddpdoctor.lint.engine.queries.partings import partings
from ddpdoctor.lint.engine.queries.raising import raised
from ddpdoctor.lint.engine.queries.skipping import skipped_steps
from ddpdoctor.lint.engine.queries.telling import decides, leaving
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP307", name="rank-local-skip", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield the ways past a step that the ranks do not agree on."""
    found = [each for each in partings(run) if name_of(run, each) == ABOUT.code]
    told = [(each, "steps pair wrongly, or they wait") for each in found]
    told += [(each, "their weights part") for each in skipped_steps(run)]
    for parting, follows in told:
        node, path = leaving(parting)
        yield Hit(
            node,
            f"one rank skips a step that the others take: {follows}",
            notes=(decides(parting), *raised(run, parting)),
            why=parting.why,
            help="agree on the skip (all_reduce a flag), or contribute zeros",
            path=path,
        )
