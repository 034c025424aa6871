"""As many collectives as a rank happens to have data for.

## What it does
Finds loops with a collective in the body that run over the keys of a dictionary which this rank
filled from its own data, or over the distinct values of a tensor.

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
from ddpdoctor.lint.engine.queries.partings import partings
from ddpdoctor.lint.engine.queries.telling import header, operation, reasons, related
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP418", name="data-dependent-collective", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield loops whose number of collectives hangs on what this rank has seen."""
    for parting in partings(run):
        if name_of(run, parting) != ABOUT.code:
            continue
        yield Hit(
            header(parting),
            f"{operation(parting.met[0])} runs once a round: ranks with other data run another "
            "number of rounds",
            notes=reasons(parting),
            help="agree on the keys and their order first, or reduce one fixed-size tensor",
            path=parting.path,
            related=related(parting),
        )
