"""Module moved to its device after the wrap.

## What it does
Finds `to(device)` or `cuda()` of a model that DDP has wrapped while it was still on the CPU, and
that is trained afterwards.

## Why is this bad?
DDP looks at the parameters' device once, when it is built: NCCL has no way to exchange what is on
the CPU, and buckets on the CPU do not fit gradients on a GPU.

## Example
```python
model = DDP(net)
model.to(device)
```

## Use instead
```python
model = DDP(net.to(device))
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import NONE, Const, Ref, Term, Value, What, is_device
from ddpdoctor.lint.engine.queries.order import is_after
from ddpdoctor.lint.engine.queries.wrapping import attributes, parts
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP305", name="late-parameter", confidence="likely")

_MOVES = ("to", "cuda")


def check(run: Run) -> Iterator[Hit]:
    """Yield what moves a wrapped model that nothing has moved before."""
    moves = [each for each in events(run.root, "convert") if _moves(each[0])]
    trained = [way for _, way in events(run.root, "backward")]
    wraps = events(run.root, "wrap") if moves and trained and not _has_a_default(run) else ()
    for wrap, at in wraps:
        module = wrap.values["module"].what
        if not isinstance(module, Ref) or run.vm.objects[module.number].cls < 0:
            continue
        inside = {Ref(each) for each in parts(run, module)}
        own = [each for each in moves if each[0].values["object"].what in inside]
        if any(not is_after(at, way) for _, way in own) or _knows_a_device(run, inside):
            continue
        wrapped: set[What] = {wrap.values["wrapper"].what, module}
        for event, way in moves:
            if event.values["object"].what in wrapped and is_after(at, way):
                if any(is_after(way, later) for later in trained):
                    yield Hit(
                        event.node,
                        f"{event.name}() moves the model after DDP has taken it for one on the CPU",
                        notes=(Related.at(wrap.place, "it is wrapped"),),
                        help="move the model first, then wrap it",
                        path=event.path,
                    )
                break


def _has_a_default(run: Run) -> bool:
    """Whether tensors may be made on another device than the CPU, without saying so."""
    texts = (run.source(path) for path in run.vm.files)
    return any(each is not None and "set_default_" in each.source.text for each in texts)


def _moves(event: Event) -> bool:
    """Whether a conversion is one to a device that is not the CPU."""
    if event.name not in _MOVES:
        return False
    given = event.values.get("arg0", event.values.get("kw_device", NONE))
    if event.name == "cuda":
        return True
    words = given.constant
    return (isinstance(words, str) and words != "cpu") or isinstance(words, int) or _is_one(given)


def _is_one(value: Value) -> bool:
    what = value.what
    return is_device(what) and Const("cpu") not in [
        Const(each.value) for each in what.args if isinstance(each, Const)
    ]


def _knows_a_device(run: Run, inside: set[Ref]) -> bool:
    """Whether a module, or a part of it, is told where it is to be when it is made."""
    held = attributes(run)
    return any(
        isinstance(value.what, Term) and is_device(value.what)
        for each in inside
        for value in held.get(each, {}).values()
    )
