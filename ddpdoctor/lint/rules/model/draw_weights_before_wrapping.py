"""Weights that each rank draws for itself, after DDP has made them alike.

## What it does
Finds `model.apply(init)`, `nn.init.…_(…)`, `reset_parameters()` and draws in place on the weights
of a module that is wrapped already, where the ranks' generators are seeded apart and nothing is
sent round afterwards.

## Why is this bad?
DDP sends rank 0's weights to all ranks once, when it is made, and afterwards gradients alone. What
each rank draws after that stays its own: the ranks train different models with one another's
gradients, and nothing raises.

## Example
```python
torch.manual_seed(seed + rank)
model = DDP(net)
model.apply(init_weights)
```

## Use instead
```python
net.apply(init_weights)
model = DDP(net)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import EVERYONE, NONE, Ref
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.order import beyond, is_after
from ddpdoctor.lint.engine.queries.wrapping import parts, weights_in
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP305", name="late-parameter", confidence="likely")

_IN_PLACE = """
    bernoulli_ cauchy_ exponential_ geometric_ kaiming_normal_ kaiming_uniform_ log_normal_ normal_
    orthogonal_ random_ sparse_ trunc_normal_ uniform_ xavier_normal_ xavier_uniform_
"""
_DRAWS = frozenset(_IN_PLACE.split())


def check(run: Run) -> Iterator[Hit]:
    """Yield where weights are drawn anew that a wrapper holds."""
    wraps = list(events(run.root, "wrap")) if run.is_entry else []
    if not wraps or not any(True for _ in events(run.root, "backward")):
        return
    order = {id(event): number for number, (event, _) in enumerate(events(run.root))}
    told: set[int] = set()
    for wrap, at in wraps:
        inside = parts(run, wrap.values["module"].what)
        for event, way in events(run.root, "change", "reset"):
            if not is_after(at, way) or doers(way).mask != EVERYONE or "fork_rng" in event.scopes:
                continue
            asked = _asked_by(at, way) or event
            if id(asked.node) in told or not _draws(event, inside):
                continue
            seed = _apart(run, order, event)
            if seed is None or _is_sent_round(run, order, event):
                continue
            told.add(id(asked.node))
            yield Hit(
                asked.node,
                "each rank draws these weights for itself, after DDP has made them alike",
                notes=(
                    Related.at(wrap.place, "it is wrapped"),
                    *((Related.at(event.place, "they are drawn"),) if asked is not event else ()),
                    Related.at(seed.place, "the ranks are seeded apart"),
                ),
                help="draw them before the model is wrapped: DDP sends rank 0's to all",
                path=asked.path,
            )


def _asked_by(wrap: Way, way: Way) -> Called | None:
    """The call that leads there from where the model is wrapped."""
    there = set(map(id, way))
    steps = (step for step in beyond(wrap, way) if id(step) in there)
    return next((step.node for step in steps if isinstance(step.node, Called)), None)


def _draws(event: Event, inside: set[int]) -> bool:
    """Whether weights of these modules are drawn anew, by a generator that all draws share."""
    call = event.node
    if isinstance(call, ast.Call) and any(each.arg == "generator" for each in call.keywords):
        return False
    owner = event.values.get("object", NONE)
    if event.kind == "reset":
        return isinstance(owner.what, Ref) and owner.what.number in inside
    weights = weights_in(owner)
    return event.name in _DRAWS and weights is not None and weights.number in inside


def _apart(run: Run, order: dict[int, int], event: Event) -> Event | None:
    """The seed that has set the ranks apart, if it is the latest before this."""
    earlier = (
        each
        for each, _ in events(run.root, "seed", "reseed", "set_rng_state")
        if order[id(each)] < order[id(event)]
    )
    *_, last = (None, *earlier)
    is_own = last is not None and last.values.get("seed", NONE).agree.kind == "rank"
    return last if is_own else None


def _is_sent_round(run: Run, order: dict[int, int], event: Event) -> bool:
    """Whether anything is sent round between this and the next backward."""
    following = (
        each
        for each, _ in events(run.root, "collective", "wrap", "backward")
        if order[id(each)] > order[id(event)]
    )
    first = next(following, None)
    return first is not None and first.kind != "backward"
