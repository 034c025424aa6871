"""Gathered features without gradient in a loss.

## What it does
Finds the output of `all_gather` in a loss that is backwarded, where the own part was not put back
and `torch.distributed.nn` is not used. Where it was gathered under `no_grad`, or detached for it,
the loss must compare it with what has a gradient, and itself have a gradient elsewhere in it.

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
from ddpdoctor.lint.engine.interpreter.tree import Event, Way, caller, events
from ddpdoctor.lint.engine.interpreter.values import Ref, Tensor, Term, Value, What
from ddpdoctor.lint.engine.libraries.torch import PRODUCTS
from ddpdoctor.lint.engine.queries.wrapping import computed_from, made_by, origins, parts
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP316", name="gathered-without-gradient", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield gathers whose output is trained on."""
    wrappers = {
        each.values["wrapper"].what.number
        for each, _ in events(run.root, "wrap")
        if isinstance(each.values["wrapper"].what, Ref)
    }
    inner = {
        number for wrap, _ in events(run.root, "wrap") for number in _parts(run, wrap) - wrappers
    }
    gathers = events(run.root, "collective")
    learnt = [
        (event, way) for event, way in gathers if _loses_a_gradient(run, event, wrappers, inner)
    ]
    if not learnt:
        return
    used = {
        value.what
        for event, _ in events(run.root, "backward")
        for value in origins(run, event.values["loss"])
    }
    compared, attached = _compared(run, wrappers), _compared(run, wrappers, "forward", "detach")
    told: set[int] = set()
    for event, way in learnt:
        filled = event.values["filled"].what
        enters = compared if "no_grad" in event.scopes else used
        given = event.values["gives"]
        if not made_by(given):
            own = _attached(run, given)
            enters = compared if own is not None and own.what in attached else set()
        if filled in enters and not _is_put_back(run, event) and id(event.node) not in told:
            told.add(id(event.node))
            yield Hit(
                event.node,
                "what is gathered has no gradient, and the loss is computed from it",
                notes=tuple(_calls(way)),
                help="put the own part back, or use torch.distributed.nn.functional.all_gather",
                path=event.path,
            )


def _parts(run: Run, wrap: Event) -> set[int]:
    return parts(run, wrap.values["module"].what)


def _loses_a_gradient(run: Run, event: Event, wrappers: set[int], inner: set[int]) -> bool:
    """Whether what this rank gives comes out of a wrapper, and is meant to be learnt from.

    Or, with its graph, out of a part of what is wrapped, within the model's own forward.
    """
    own, filled = event.values.get("gives"), event.values.get("filled")
    if own is None or filled is None or not isinstance(filled.what, Tensor | Term):
        return False
    if (made_by(own) or made_by(_attached(run, own))) & wrappers:
        return True
    return "no_grad" not in event.scopes and bool(made_by(own) & inner)


def _attached(run: Run, given: Value) -> Value | None:
    """What was detached to be given, where nothing else was done to it."""
    made = run.vm.made.get(given.what)
    return made.of[0] if made is not None and made.by == "detach" and made.of else None


def _calls(way: Way) -> Iterator[Related]:
    """The call that hands the features over."""
    called = caller(way)
    if called is not None:
        yield Related.at(called.place, f"{called.name}() is given them")


def _compared(run: Run, wrappers: set[int], *until: str) -> set[What]:
    """What a loss multiplies with what has a gradient: of two that are learnt together, one.

    With what each was computed from, back to such steps.
    """
    found: set[What] = set()
    for event, _ in events(run.root, "backward"):
        for _, step in computed_from(run, event.values["loss"]):
            if step.by in PRODUCTS and any(made_by(each) & wrappers for each in step.of):
                found |= {one.what for each in step.of for one in origins(run, each, *until)}
    return found


def _is_put_back(run: Run, event: Event) -> bool:
    """Whether `out[rank] = x` writes this rank's own into what was gathered."""
    filled = event.values["filled"].what
    return any(
        each.values["owner"].what == filled and made_by(each.values["value"])
        for each, _ in events(run.root, "set_item")
    )
