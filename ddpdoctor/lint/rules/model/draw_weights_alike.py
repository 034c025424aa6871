"""Weights that each rank draws for itself, and that nobody makes alike.

## What it does
Finds models whose gradients are averaged by hand, and that each rank has drawn with a generator
that is seeded by the rank, where nothing is sent round before the first backward.

## Why is this bad?
DDP sends rank 0's weights to all ranks when it is made; who averages gradients without it must do
so as well. Each rank otherwise goes on from its own weights with the gradients of all: the ranks
train different models to the end, and nothing raises.

## Example
```python
torch.manual_seed(seed + rank)
net = Net()
```

## Use instead
```python
torch.manual_seed(seed)
net = Net()
torch.manual_seed(seed + rank)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    NONE,
    NOTHING,
    Ref,
    Term,
    Value,
    within,
)
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.reducing import is_gradient, reduced_by_hand
from ddpdoctor.lint.engine.queries.sharding import numbers
from ddpdoctor.lint.engine.queries.wrapping import mentioned, origins, parts, stepped_by
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP310", name="different-models", confidence="likely")

_SEEDS = ("seed", "seed_all", "reseed", "set_rng_state")
_SHARES = ("wrap", "shard", "spread", "load_state")


def check(run: Run) -> Iterator[Hit]:
    """Yield models that begin otherwise on each rank, and are trained as one."""
    stepped = {
        module
        for optimizer, _ in events(run.root, "new")
        if run.vm.type_of(optimizer.values["object"]) == "torch.optim.Optimizer"
        for module in stepped_by(run, optimizer)
    }
    seed: Event | None = None
    for event, way in events(run.root, *_SEEDS, "make", "new") if stepped else ():
        if event.kind in _SEEDS:
            is_own = event.values.get("seed", NONE).agree.kind == "rank"
            seed = event if is_own else None
            continue
        model = event.values["object"].what
        if seed is None or model not in stepped or doers(way).mask != EVERYONE:
            continue
        if "fork_rng" in event.scopes or not _is_averaged(run, event, parts(run, model)):
            continue
        yield Hit(
            event.node,
            "each rank draws these weights for itself, and nothing makes them alike: averaged "
            "gradients train different models",
            notes=(Related.at(seed.place, "the ranks are seeded apart"),),
            help="seed the ranks alike to build it, or broadcast rank 0's weights once",
            path=event.path,
        )


def _is_averaged(run: Run, made: Event, inside: set[int]) -> bool:
    """Whether gradients of a model are reduced by hand, and of its weights nothing is shared."""
    weights = {Ref(each) for each in inside}
    if not reduced_by_hand(run, weights):
        return False
    if any(numbers(each) & inside for each in _shared(run)):
        return False
    is_trained = False
    for event, _ in events(run.root, "collective", "backward"):
        if event.order < made.order:
            continue
        is_trained |= event.kind == "backward"
        if not is_trained or _may_share(run, event.values.get("shares"), weights):
            return False
    return is_trained


def _shared(run: Run) -> Iterator[Value]:
    """The models that are wrapped, sharded, or loaded."""
    for event, _ in events(run.root, *_SHARES):
        yield event.values.get("module") or event.values.get("object", NONE)


def _may_share(run: Run, given: Value | None, weights: set[Ref]) -> bool:
    """Whether weights may be sent round, and not what they have for gradients."""
    return given is not None and any(
        each.what == NOTHING
        or (not _is_of_a_gradient(each) and not weights.isdisjoint(mentioned(run, each)))
        for each in (given, *origins(run, given))
    )


def _is_of_a_gradient(value: Value) -> bool:
    return any(isinstance(each, Term) and is_gradient(each) for each in within(value.what))
