"""Lazy layers that are wrapped before anything has gone through them.

## What it does
Finds models with a layer that learns its size from its first input (`LazyLinear` and the like),
that are wrapped in DDP before a forward or a checkpoint has given it one.

## Why is this bad?
DDP makes buckets of the parameters when it is built, and raises: "Modules with uninitialized
parameters can't be used with `DistributedDataParallel`".

## Example
```python
net = nn.Sequential(nn.Flatten(), nn.LazyLinear(10))
model = DDP(net)
```

## Use instead
```python
net = nn.Sequential(nn.Flatten(), nn.LazyLinear(10))
net(torch.zeros(1, 1, 28, 28))
model = DDP(net)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import Ref
from ddpdoctor.lint.engine.queries.wrapping import parts
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP305", name="late-parameter", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield wraps of models of which a part has no size yet."""
    if not run.is_entry:
        return
    lazy = {
        event.values["object"].what: event
        for event, _ in events(run.root, "new")
        if event.name.startswith("torch.nn.Lazy")
    }
    for wrap, _ in events(run.root, "wrap") if lazy else ():
        inside = parts(run, wrap.values["module"].what)
        if inside & run.vm.handed:
            continue  # nobody has seen what was done with it there
        for number in sorted(inside):
            made = lazy.get(Ref(number))
            if made is not None and not _has_its_size(run, number, wrap):
                yield Hit(
                    wrap.node,
                    "a layer of this model has no size yet: DDP cannot be built before a forward",
                    notes=(Related.at(made.place, "it takes its size from its first input"),),
                    help="run one sample through the model first, then wrap it",
                    path=wrap.path,
                )
                break


def _has_its_size(run: Run, layer: int, wrap: Event) -> bool:
    """Whether something may have gone through a layer before the wrap, or a state into it."""
    for event, _ in events(run.root, "wrap", *_GIVES):
        if event is wrap:
            return False
        given = event.values.get("model") or event.values.get("object")
        what = given.what if event.kind != "wrap" and given is not None else None
        if what is not None and layer in parts(run, what):
            return True
    return False


_GIVES = ("forward", "bare_forward", "use", "load_state")
