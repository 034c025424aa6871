"""As many collectives as a rank happens to have data for.

## What it does
Finds loops with a collective in the body that run over the keys of a dictionary which this rank
filled from its own data, or over the distinct values of a tensor; and conditions that let a rank
pass a collective because it has nothing of its own to share.

## Why is this bad?
A rank that has not seen one of the classes runs one collective less. The others wait for it, or
their reductions pair with the wrong key.

## Example
```python
for label in sorted(counts):
    dist.all_reduce(counts[label])
```

## Use instead
```python
for label in range(num_classes):
    dist.all_reduce(counts[label])
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.queries.naming import name_of
from ddpdoctor.lint.engine.queries.partings import Parting, partings
from ddpdoctor.lint.engine.queries.telling import (
    decides,
    decision,
    filled_by_some,
    of_a_table,
    operation,
)
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP418", name="data-dependent-collective", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield loops and conditions by which what this rank has seen decides on collectives."""
    for parting in partings(run):
        if name_of(run, parting) != ABOUT.code:
            continue
        if parting.repeats and parting.condition.agree.cause == "exception":
            continue  # who has failed to join the others goes on alone
        met = operation(parting.met[0])
        node, path = decision(run, parting)
        yield Hit(
            node,
            f"{met} runs once a round: ranks with other data run another number of rounds"
            if parting.repeats
            else f"{met} runs only where this rank has anything to share",
            notes=(decides(parting),),
            why=parting.why,
            help="agree on the keys and their order first, or reduce one fixed-size tensor",
            path=path,
            harmless=parting.repeats and not _is_shown(run, parting),
        )


def _is_shown(run: Run, parting: Parting) -> bool:
    """Whether flow shows that the rounds differ: most data has the same names, and as many parts.

    Or what is gone through was put there under a condition that this rank's own data decides. Most
    shards have something under each of a few names that the program itself lists.
    """
    agree = parting.condition.agree
    is_own = agree.cause in ("", "data")  # the rank's number decides it, or what the rank has seen
    return (agree.sure and not of_a_table(run, parting)) or (
        is_own and filled_by_some(parting) is not None
    )
