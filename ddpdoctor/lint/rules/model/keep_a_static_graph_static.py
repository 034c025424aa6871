"""A static graph that changes.

## What it does
Finds `static_graph=True` for a model of the same file whose forward uses one of its parts only if
an argument says so.

## Why is this bad?
DDP records in the first step which parameters take part, and expects the same for ever: "Your
training graph has changed in this iteration".

## Example
```python
def forward(self, x, with_auxiliary):
    h = self.body(x)
    return self.auxiliary(h) if with_auxiliary else self.main(h)

model = DDP(TwoHeads(), static_graph=True)
```

## Use instead
```python
model = DDP(TwoHeads(), find_unused_parameters=True)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import events
from ddpdoctor.lint.engine.queries.forwards import decided_by, depends, forward_of
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP317", name="static-graph-changed", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield promises that a forward does not keep."""
    for wrap, _ in events(run.root, "wrap"):
        promised = wrap.values.get("kw_static_graph")
        if promised is None or not promised.is_const(True):
            continue
        forward = forward_of(run, wrap.values["module"])
        if forward is None:
            continue
        for condition, place, _ in decided_by(run, forward.seq):
            if not depends(run, condition, forward):
                continue
            yield Hit(
                wrap.node,
                "static_graph=True, but what forward is given decides which parts it uses",
                notes=(Related.at(place, "it decides in the forward"),),
                help="find_unused_parameters=True, or two wrappers",
                path=wrap.path,
            )
            break
