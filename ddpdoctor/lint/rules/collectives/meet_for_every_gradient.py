"""Gradients that are averaged by hand, where a rank has none.

## What it does
Finds a collective on `p.grad` that a rank leaves out where `p.grad is None`, in a loop that trains
a module of which this rank's own data decide which parts take part.

## Why is this bad?
Who has not used a part in this batch has no gradient of it, and goes on to the next parameter. The
others wait for it there: they get the gradient of another parameter, if that is as large, or hang.

## Example
```python
for p in net.parameters():
    if p.grad is None:
        continue
    dist.all_reduce(p.grad)
```

## Use instead
```python
for p in net.parameters():
    if p.grad is None:
        p.grad = torch.zeros_like(p)
    dist.all_reduce(p.grad)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, walk
from ddpdoctor.lint.engine.interpreter.values import EVERYONE
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.lacking import asks_for_a_gradient, own_choices
from ddpdoctor.lint.engine.queries.partings import leaves, met
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP418", name="data-dependent-collective", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield the ways past a collective on gradients that some rank may lack."""
    told: set[int] = set()
    for node, way in walk(run.root):
        if not isinstance(node, Choice) or not asks_for_a_gradient(node.test):
            continue
        if id(node.node) in told or doers(way).mask != EVERYONE:
            continue
        exits = [leaves(arm.body) for arm in node.arms]
        left = next((each for each in exits if each is not None), None)
        missed = list(met(way[-1].rest)) if left is not None and left.kind == "continue" else []
        inside = [[*met(arm.body.items)] for arm in node.arms]
        missed += next((each for each in inside if each), []) if not all(inside) else []
        collective = next((each.event for each in missed if each.event.kind == "collective"), None)
        if collective is None:
            continue
        for place in own_choices(run, way):
            told.add(id(node.node))
            yield Hit(
                left.node if left is not None else node.test,
                "a rank that has no gradient here leaves the collective out that others wait in",
                notes=(
                    Related.at(collective.place, f"it misses {collective.name}()"),
                    Related.at(place, "each rank decides here by itself which part it uses"),
                ),
                help="give it zeros (`p.grad = torch.zeros_like(p)`), and reduce them all the same",
                path=node.path,
            )
            break
