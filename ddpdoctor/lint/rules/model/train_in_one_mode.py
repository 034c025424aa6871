"""Model that some ranks train in evaluation mode.

## What it does
Finds a model in DDP that some ranks alone have put into evaluation mode, and not back, before the
next step: where rank 0 evaluates, and leaves early.

## Why is this bad?
Dropout and batch statistics are on for some ranks and off for others: each computes gradients of
another model, and DDP averages them. Nothing raises.

## Example
```python
if rank == 0:
    net.eval()
    score = evaluate(net)
```

## Use instead
```python
if rank == 0:
    net.eval()
    score = evaluate(net)
    net.train()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Choice, Exit, Way, events, walk
from ddpdoctor.lint.engine.interpreter.values import EVERYONE, Ref
from ddpdoctor.lint.engine.queries.doing import doers, keeps_apart
from ddpdoctor.lint.engine.queries.order import beyond, is_after
from ddpdoctor.lint.engine.queries.wrapping import parts
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP310", name="different-models", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield what some ranks alone switch off before all of them go on training."""
    wraps = {each.values["wrapper"].what: each for each, _ in events(run.root, "wrap")}
    told: set[int] = set()
    for event, way in events(run.root, "forward"):
        mode, wrap = event.values.get("training"), wraps.get(event.values["model"].what)
        if mode is None or not mode.agree.divergent or not mode.agree.sure or wrap is None:
            continue
        if "no_grad" in event.scopes or doers(way).mask != EVERYONE:
            continue
        inside = parts(run, wrap.values["module"].what)
        if not _minds(run, inside):
            continue
        for switch, to in events(run.root, "switch"):
            of = switch.values["object"].what
            apart = keeps_apart(doers(to).choices)
            if not isinstance(of, Ref) or of.number not in inside or apart is None:
                continue
            if switch.values["mode"].is_const(False) and id(switch.node) not in told:
                told.add(id(switch.node))
                yield Hit(
                    switch.node,
                    "some ranks alone go on in evaluation mode, where the others train",
                    notes=(Related.at(event.place, "all ranks train here"), *_ways_out(run, to)),
                    why=mode.why,
                    help="put it back with train() on every way out",
                    path=switch.path,
                )


def _ways_out(run: Run, switch: Way) -> Iterator[Related]:
    """The early ways out of the function that has switched it off."""
    calls = [step.node for step in switch if isinstance(step.node, Called)]
    for node, way in walk(run.root) if calls else ():
        if not isinstance(node, Exit) or node.kind != "return" or not is_after(switch, way):
            continue
        inside = any(step.node is calls[-1] for step in way)
        if inside and any(isinstance(step.node, Choice) for step in beyond(way, switch)):
            yield Related.at(node.place, "they leave here")


def _minds(run: Run, inside: set[int]) -> bool:
    """Whether a mode makes a difference to any part of it: it drops, or normalises by batches."""
    if any(True for _ in events(run.root, "dropout")):
        return True
    made = (run.vm.objects[each] for each in inside)
    return any(each.effect is not None and each.effect.option("has") == "batch" for each in made)
