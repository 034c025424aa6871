"""torch.autograd.grad over a wrapper's parameters.

## What it does
Finds `torch.autograd.grad(..., ddp_model.parameters())`.

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

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.queries.wrapping import mentioned, wrappers
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP313", name="autograd-grad-bypass", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield gradients that are taken past the reducer."""
    wrapped = wrappers(run)
    for event, _ in events(run.root, "grad"):
        inputs, graph = event.values.get("inputs"), event.values.get("kw_create_graph")
        if inputs is None or (graph is not None and not graph.is_const(False)):
            continue
        if mentioned(run, inputs) & wrapped.keys() and not _is_reduced_later(run, event):
            yield Hit(
                event.node,
                "autograd.grad over the parameters of the DDP model is not reduced over ranks",
                help="use backward(), or all_reduce the gradients yourself",
                path=event.path,
            )


def _is_reduced_later(run: Run, grad: Event) -> bool:
    """Whether all ranks sum or average something between the gradients and the step."""
    after = False
    for event, _ in events(run.root, "grad", "collective", "step"):
        if event is grad:
            after = True
        elif after and event.kind == "step":
            return False
        elif after and event.kind == "collective" and event.name == "all_reduce":
            return True
    return False
