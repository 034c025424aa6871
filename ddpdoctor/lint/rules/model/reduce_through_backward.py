"""torch.autograd.grad over a wrapper's parameters.

## What it does
Finds `torch.autograd.grad(..., ddp_model.parameters())`, unless nothing but numbers that are told
comes of the gradients: their norm, for a log.

## Why is this bad?
DDP reduces in hooks that only `backward()` fires. The gradients are this rank's own, and nothing
says so.

## Example
```python
grads = torch.autograd.grad(loss, ddp_model.parameters())
```

## Use instead
```python
loss.backward()
grads = [p.grad for p in ddp_model.parameters()]
```
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from ddpdoctor.lint.engine.interpreter.objects import containers
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import NOTHING, Many, Tensor, Tuple, Value, What
from ddpdoctor.lint.engine.queries.consuming import is_kept, sites
from ddpdoctor.lint.engine.queries.wrapping import mentioned, origins, wrappers
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP313", name="autograd-grad-bypass", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield gradients that are taken past the reducer."""
    wrapped = wrappers(run).keys()
    for event, _ in events(run.root, "grad"):
        inputs, graph = event.values.get("inputs"), event.values.get("kw_create_graph")
        if inputs is None or (graph is not None and not graph.is_const(False)):
            continue
        if not mentioned(run, inputs) & wrapped or _is_shared_later(run, event, wrapped):
            continue
        if not _is_measured(run, event):
            yield Hit(
                event.node,
                "autograd.grad over the parameters of the DDP model is not reduced over ranks",
                help="use backward(), or all_reduce the gradients yourself",
                path=event.path,
            )


def _is_shared_later(run: Run, grad: Event, wrapped: Set[What]) -> bool:
    """Whether ranks may share the gradients between here and the step."""
    after = False
    written: set[What] = set()
    for event, _ in events(run.root, "grad", "change", "collective", "step"):
        if event is grad:
            after = True
        elif after and event.kind == "step":
            return False
        elif after and event.kind == "change":
            written |= {each.what for each in origins(run, event.values["object"])}
        elif after and event.kind == "collective" and event.name not in _OF_NOTHING:
            given = [value for role in _CARRIED if (value := event.values.get(role)) is not None]
            if not given or any(_may_be_of(run, each, grad, wrapped | written) for each in given):
                return True
    return False


def _is_measured(run: Run, grad: Event) -> bool:
    """Whether all that comes of the gradients are numbers, and none of these goes into training."""
    is_number: dict[int, bool] = {}
    ends: set[int] = set()
    for what, made in run.vm.made.items():
        if not isinstance(what, Tensor):
            continue
        behind = {each for value in made.of for each in sites(run, value)} & is_number.keys()
        if made.node is grad.node or behind:
            counts = made.by in _NUMBERS or (bool(behind) and all(is_number[n] for n in behind))
            is_number[what.site] = counts
            ends = (ends | {what.site}) - behind
    if not ends or not all(is_number[each] for each in ends):
        return False
    return not any(
        event.kind in _TRAINING or not is_number[site]
        for event, _ in events(run.root, *_TRAINING, "set_attribute", "collective")
        if not is_kept(run, event)
        for value in event.values.values()
        for site in sites(run, value)
        if site in is_number
    )


_NUMBERS = ("item", "tolist", "float", "int", "bool")
_TRAINING = ("backward", "change", "step")
_OF_NOTHING = ("barrier", "monitored_barrier")
_CARRIED = ("shares", "gives", "collects", "fills")


def _may_be_of(run: Run, given: Value, grad: Event, wrapped: Set[What]) -> bool:
    """Whether a tensor comes of these gradients, or of what nobody knows to be anything else."""
    content = containers.content(run.vm, given) or given
    for each in origins(run, content):
        made = run.vm.made.get(each.what)
        if made is not None and made.node is grad.node:
            return True
        if each.what == NOTHING or mentioned(run, each) & wrapped or each.what in wrapped:
            return True
    return not isinstance(content.what, Tensor | Tuple | Many)
