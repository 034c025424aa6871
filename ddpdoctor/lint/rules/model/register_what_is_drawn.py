"""Tensor that each rank has drawn for itself, and that DDP does not share.

## What it does
Finds tensors drawn at random that a module keeps as plain attributes, where each rank draws others,
and that its forward reads: random projections, frequencies, masks, codes.

## Why is this bad?
DDP sends rank 0's parameters and buffers to all ranks, and nothing else. The ranks then train one
set of weights for models that differ in the rest; what is saved goes with one of them alone.

## Example
```python
self.frequencies = torch.randn(2, 64)
```

## Use instead
```python
self.register_buffer("frequencies", torch.randn(2, 64))
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import Ref, Tensor, Value
from ddpdoctor.lint.engine.queries.order import is_after
from ddpdoctor.lint.engine.queries.reading import reads
from ddpdoctor.lint.engine.queries.wrapping import parts
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP310", name="different-models", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield attributes of wrapped modules that are another tensor on each rank."""
    set_ = [(each, way) for each, way in events(run.root, "set_attribute") if _is_kept(each)]
    if not set_ or not any(True for _ in events(run.root, "backward")):
        return
    told: set[int] = set()
    for wrap, at in events(run.root, "wrap"):
        inside = parts(run, wrap.values["module"].what)
        for event, way in set_:
            value, name = event.values["value"], event.name
            owner = event.values["owner"].what
            if not isinstance(owner, Ref) or owner.number not in inside or id(event.node) in told:
                continue
            if not _is_drawn_apart(value) or not is_after(way, at) or not reads(run, name):
                continue
            if value.what in run.vm.buffers:
                continue  # under this name a buffer was registered: another tensor is it as well
            if run.vm.store.get((owner, name)) == value and not _is_set_again(set_, event, at):
                told.add(id(event.node))
                yield Hit(
                    event.node,
                    f"each rank draws `{name}` for itself, and DDP shares parameters and buffers "
                    "alone: the ranks train different models",
                    notes=(Related.at(wrap.place, "it is wrapped"),),
                    why=value.why,
                    help=f'`self.register_buffer("{name}", ...)`, or a generator seeded alike',
                    path=event.path,
                )


def _is_kept(event: Event) -> bool:
    """Whether an object is given a tensor."""
    return isinstance(event.values["value"].what, Tensor)


def _is_drawn_apart(value: Value) -> bool:
    agree = value.agree
    return agree.sure and agree.kind == "local" and agree.cause == "chance"


def _is_set_again(set_: list[tuple[Event, Way]], event: Event, wrapped: Way) -> bool:
    """Whether the attribute is given another value once the module is wrapped."""
    owner = event.values["owner"].what
    return any(
        each.name == event.name and each.values["owner"].what == owner and is_after(wrapped, way)
        for each, way in set_
    )
