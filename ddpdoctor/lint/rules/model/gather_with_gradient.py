"""Gathered features without gradient in a loss.

## What it does
Finds the output of `all_gather` in a loss that is backwarded, where the own part was not put back
and `torch.distributed.nn` is not used.

## Why is this bad?
The collective copies values, not graphs: the gathered tensor has no gradient at all, also for this
rank's own features. The contrastive term trains one side only, or nothing.

## Example
```python
dist.all_gather(parts, features)
loss = contrastive(features, torch.cat(parts))
loss.backward()
```

## Use instead
```python
dist.all_gather(parts, features)
parts[dist.get_rank()] = features
loss = contrastive(features, torch.cat(parts))
loss.backward()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import Ref, Tensor, Term
from ddpdoctor.lint.engine.queries.wrapping import made_by, origins
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP316", name="gathered-without-gradient", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield gathers whose output is trained on."""
    wrappers = {
        each.values["wrapper"].what.number
        for each, _ in events(run.root, "wrap")
        if isinstance(each.values["wrapper"].what, Ref)
    }
    gathers = (event for event, _ in events(run.root, "collective"))
    learnt = [event for event in gathers if _loses_a_gradient(event, wrappers)]
    if not learnt:
        return
    used = {
        value.what
        for event, _ in events(run.root, "backward")
        for value in origins(run, event.values["loss"])
    }
    told: set[int] = set()
    for event in learnt:
        filled = event.values["filled"].what
        if filled in used and not _is_put_back(run, event) and id(event.node) not in told:
            told.add(id(event.node))
            yield Hit(
                event.node,
                "what is gathered has no gradient, and the loss is computed from it",
                help="put the own part back, or use torch.distributed.nn.functional.all_gather",
                path=event.path,
            )


def _loses_a_gradient(event: Event, wrappers: set[int]) -> bool:
    """Whether what this rank gives comes out of a wrapper, and is meant to be learnt from."""
    own, filled = event.values.get("gives"), event.values.get("filled")
    if "no_grad" in event.scopes or filled is None or not isinstance(filled.what, Tensor | Term):
        return False
    return bool(made_by(own) & wrappers)


def _is_put_back(run: Run, event: Event) -> bool:
    """Whether `out[rank] = x` writes this rank's own into what was gathered."""
    filled = event.values["filled"].what
    return any(
        each.values["owner"].what == filled and made_by(each.values["value"])
        for each, _ in events(run.root, "set_item")
    )
