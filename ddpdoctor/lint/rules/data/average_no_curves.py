"""Mean over the ranks of what does not average.

## What it does
Finds an average over the ranks of a perplexity, a root or a logarithm that each rank has made of
its own sums: `exp(nll / tokens)`, `sqrt(squares / count)`.

## Why is this bad?
The mean of exponentials is not the exponential of the mean, and ranks that have counted unlike
numbers weigh alike. The number depends on how many ranks there are, and is that of no data set.

## Example
```python
perplexity = torch.tensor(nll / tokens).exp()
dist.all_reduce(perplexity, op=dist.ReduceOp.AVG)
```

## Use instead
```python
sums = torch.tensor([nll, tokens])
dist.all_reduce(sums)
perplexity = (sums[0] / sums[1]).exp()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.machine import Made
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import events
from ddpdoctor.lint.engine.interpreter.values import Tuple, Value
from ddpdoctor.lint.engine.libraries.torch import DIVISIONS
from ddpdoctor.lint.engine.queries.reducing import is_averaged
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP214", name="metric-not-reduced", confidence="likely")

_CURVES = ("exp", "exp2", "sqrt", "log", "log2", "log10")
_CARRIES = """
    as_tensor clone detach double float item reshape squeeze stack tensor to unsqueeze view
"""
_CARRY = frozenset(_CARRIES.split())


def check(run: Run) -> Iterator[Hit]:
    """Yield the averages of what each rank has made of a quotient of its own."""
    told: set[int] = set()
    for event, _ in events(run.root, "collective"):
        shared = event.values.get("shares")
        if shared is None or event.name != "all_reduce" or not is_averaged(run, event):
            continue
        for curve in _made_of(run, shared):
            if curve.by.rpartition(".")[2] not in _CURVES or id(curve.node) in told:
                continue
            quotient = next(
                (each for each in _made_of(run, curve.of[0]) if _is_of_its_own(each)), None
            )
            if quotient is not None:
                told.add(id(curve.node))
                name = curve.by.rpartition(".")[2]
                yield Hit(
                    curve.node,
                    f"the ranks' own {name}(...) are averaged: that is not the {name}(...) of what "
                    "all have",
                    notes=(Related.at(event.place, "they are averaged"),),
                    why=quotient.of[1].why,
                    help="sum what is divided and what it is divided by over the ranks first",
                    path=curve.path,
                )


def _made_of(run: Run, value: Value) -> Iterator[Made]:
    """How a number was made, or those in a tensor of a few, through all that only carries it."""
    stack = [value]
    while stack:
        each = stack.pop()
        if isinstance(each.what, Tuple):
            stack += each.what.items
            continue
        made = run.vm.made.get(each.what)
        if made is not None and made.by in _CARRY:
            stack += made.of[:1]
        elif made is not None and made.of:
            yield made


def _is_of_its_own(made: Made) -> bool:
    """Whether it is a sum of the rank's own over a number of the rank's own."""
    return made.by in DIVISIONS and all(
        each.agree.kind == "local" and each.agree.sure for each in made.of[:2]
    )
