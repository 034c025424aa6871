"""Gradients that DDP has averaged, summed over the ranks once more.

## What it does
Finds an `all_reduce` that sums the gradients of a model in DDP after its backward, or a norm that
is computed from these, where nothing divides the sum.

## Why is this bad?
Behind the backward of a wrapper the gradients are the same on all ranks. Their sum is that many
times the gradient, as is every step with it; and a norm of which the squares are summed is as much
too long as the root of that, so that clipping cuts off what is not too long.

## Example
```python
loss.backward()
for p in ddp_model.parameters():
    dist.all_reduce(p.grad)
optimizer.step()
```

## Use instead
```python
loss.backward()
optimizer.step()
```
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from ddpdoctor.lint.engine.interpreter.objects import containers
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import (
    NOTHING,
    WORLD,
    Ref,
    Term,
    Tuple,
    Value,
    What,
    within,
)
from ddpdoctor.lint.engine.libraries.torch import DIVISIONS, WITHOUT_GRAPH
from ddpdoctor.lint.engine.queries.reducing import divides, is_gradient, sums
from ddpdoctor.lint.engine.queries.wrapping import made_by, mentioned, origins, wrappers
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP421", name="reduced-twice", confidence="likely")

_MULTIPLIES = ("Mult", "mul", "mul_", "multiply")


def check(run: Run) -> Iterator[Hit]:
    """Yield sums over the ranks of what backward has made the same on all of them."""
    backward: Event | None = None
    told: set[int] = set()
    reduced = _reduced(run)
    for event, _ in events(run.root, "backward", "collective") if reduced else ():
        if event.kind == "backward":
            backward = event
            continue
        given = event.values.get("shares")
        if event.name != "all_reduce" or given is None or not sums(event) or backward is None:
            continue
        of = made_by(backward.values["loss"])
        own = {what for what, wrapper in reduced.items() if wrapper in of and -wrapper not in of}
        if id(event.node) in told or not _is_of_gradients(run, given, own):
            continue
        if not _is_averaged(run, given) and not _is_beside_others(run, given, own):
            told.add(id(event.node))
            yield Hit(
                event.node,
                "this comes of gradients that DDP has averaged: each rank adds the same once more",
                notes=(Related.at(backward.place, "they are reduced here"),),
                help="leave the reduction out, or divide by the number of ranks",
                path=event.path,
            )


def _reduced(run: Run) -> dict[What, int]:
    """Wrapper, and the module inside -> the number of the wrapper, of those that always reduce."""
    if any(True for event, _ in events(run.root, "scope") if event.name == "no_sync"):
        return {}
    if any(True for _ in events(run.root, "comm_hook")) or any(
        made.by == "register_comm_hook" for made in run.vm.made.values()
    ):
        return {}
    return {
        what: wrapper.number
        for what, wrap in wrappers(run).items()
        if isinstance(wrapper := wrap.values["wrapper"].what, Ref)
        and run.vm.store.get((wrapper, "#process_group")) is None
    }


def _is_of_gradients(run: Run, given: Value, reduced: Set[What]) -> bool:
    """Whether it is a gradient of these, or computed from such: a flag that says of it is not."""
    return any(
        any(is_gradient(part) for part in within(each.what) if isinstance(part, Term))
        and not mentioned(run, each).isdisjoint(reduced)
        for each in (given, *origins(run, given, *WITHOUT_GRAPH))
    )


def _is_beside_others(run: Run, given: Value, reduced: Set[What]) -> bool:
    """Whether other totals are summed with it, as how many there were: their ratio stays."""
    made = run.vm.made.get(given.what)
    contents = [containers.content(run.vm, each) for each in made.of] if made is not None else []
    items = [
        one for each in contents if each and isinstance(each.what, Tuple) for one in each.what.items
    ]
    return any(not _is_of_gradients(run, each, reduced) for each in items)


def _is_averaged(run: Run, given: Value) -> bool:
    """Whether it is scaled before, or what comes of it afterwards, by what may be of the ranks."""
    behind = {each.what for each in origins(run, given)}
    if any(WORLD in within(each) for each in behind):
        return True
    come: set[What] = {given.what}
    for what, made in run.vm.made.items():
        parts = [each.what for each in made.of]
        comes = not come.isdisjoint(parts)
        if what in behind or comes:
            whole = what in behind or parts[0] in come  # what it divides itself, is not scaled
            if (whole and made.by in DIVISIONS) or (made.by in _MULTIPLIES and _is_of_ranks(parts)):
                return True
        if comes:
            come.add(what)
    return any(
        event.values["object"].what in come
        and (
            divides(event)
            or _is_of_ranks([by.what for role in ("by", "given") if (by := event.values.get(role))])
        )
        for event, _ in events(run.root, "change")
    )


def _is_of_ranks(factors: list[What]) -> bool:
    """Whether their number is in one of these, or nobody knows what is."""
    return any(
        part in (WORLD, NOTHING) or (isinstance(part, Term) and part.op == "parameter")
        for each in factors
        for part in within(each)
    )
