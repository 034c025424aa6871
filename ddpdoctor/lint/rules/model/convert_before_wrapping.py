"""Module converted after the wrap.

## What it does
Finds `half()`, `bfloat16()` or `double()` of a model that DDP has wrapped already, and that is
trained further.

## Why is this bad?
The conversion replaces the parameters' data under DDP's buckets, and rounds it: what follows trains
on weights that have lost their last digits, each time anew. Converting back does not bring them
back.

## Example
```python
model = DDP(net)
for epoch in range(epochs):
    train(model)
    torch.save(model.half().state_dict(), path)
    model.float()
```

## Use instead
```python
torch.save({name: value.half() for name, value in model.module.state_dict().items()}, path)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Loop, events, walk
from ddpdoctor.lint.engine.interpreter.values import What
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP305", name="late-parameter", confidence="certain")

_ROUNDS = ("half", "bfloat16", "double")


def check(run: Run) -> Iterator[Hit]:
    """Yield the conversions of what is wrapped."""
    wrapped: set[What] = set()
    found = list(walk(run.root))
    for index, (node, way) in enumerate(found):
        if not isinstance(node, Event):
            continue
        if node.kind == "wrap":
            wrapped |= {node.values["wrapper"].what, node.values["module"].what}
        elif node.kind == "convert" and node.name in _ROUNDS:
            if node.values["object"].what not in wrapped:
                continue
            loops = [step.node for step in way if isinstance(step.node, Loop)]
            again = any(any(True for _ in events(loop.body, "backward")) for loop in loops)
            later = any(
                isinstance(each, Event) and each.kind == "backward" for each, _ in found[index:]
            )
            if again or later:
                yield Hit(
                    node.node,
                    f"{node.name}() converts the model that DDP has wrapped, and training goes on",
                    help="convert a copy of the state dict, or convert before wrapping",
                    path=node.path,
                )
