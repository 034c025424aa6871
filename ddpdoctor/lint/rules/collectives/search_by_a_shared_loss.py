"""L-BFGS that searches by a loss of each rank's own.

## What it does
Finds closures of L-BFGS that go backward through a wrapper, or reduce something, and give back a
loss that is this rank's alone.

## Why is this bad?
What the closure gives decides how often it is called. The ranks search otherwise and go backward
unequally often: gradients of different calls are averaged, and the last to search waits for ever.

## Example
```python
def closure():
    optimizer.zero_grad()
    loss = criterion(ddp_model(x), y)
    loss.backward()
    return loss

optimizer.step(closure)
```

## Use instead
```python
def closure():
    optimizer.zero_grad()
    loss = criterion(ddp_model(x), y)
    loss.backward()
    mean = loss.detach().clone()
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    return mean

optimizer.step(closure)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Event, Exit, events, walk
from ddpdoctor.lint.engine.interpreter.values import EVERYONE, NONE, Ref
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.wrapping import made_by, wrappers
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP405", name="local-stop-decision", confidence="likely")

_OF_DATA = ("data", "shard", "chance")


def check(run: Run) -> Iterator[Hit]:
    """Yield what closures give to an optimizer that calls them as often as it likes."""
    if not run.is_entry:
        return
    searching = {
        event.values["object"].what: event
        for event, _ in events(run.root, "new")
        if event.name.endswith(".LBFGS") and _searches(run, event)
    }
    closures = [node for node, _ in walk(run.root) if isinstance(node, Called)] if searching else []
    told: set[int] = set()
    for step, way in events(run.root, "step") if searching else ():
        made = searching.get(step.values.get("object", NONE).what)
        agree = step.values.get("gave", NONE).agree
        is_own = agree.kind == "local" and agree.sure and agree.cause in _OF_DATA
        if made is None or not is_own or doers(way).mask != EVERYONE or id(step.node) in told:
            continue
        closure = next((each for each in closures if each.node is step.node), None)
        waits = closure and _waits(run, closure)
        if not closure or not waits:
            continue
        told.add(id(step.node))
        given = next((x for x in reversed(closure.body.items) if isinstance(x, Exit)), None)
        yield Hit(
            given.node if given else step.node,
            "L-BFGS goes by this loss of each rank's own: ranks call the closure unequally often",
            notes=(
                Related.at(step.place, "it is called from here"),
                Related.at(waits.place, "the others wait for it here"),
            ),
            why=step.values["gave"].why,
            help="give back the mean over all ranks: dist.all_reduce of the detached loss",
            path=given.path if given else step.path,
        )


def _waits(run: Run, closure: Called) -> Event | None:
    """What a closure does with all ranks: it reduces something, or goes back through a wrapper."""
    wrapped = {each.number for each in wrappers(run) if isinstance(each, Ref)}
    for event, _ in events(closure.body, "collective", "backward"):
        if event.kind == "collective" or made_by(event.values["loss"]) & wrapped:
            return event
    return None


def _searches(run: Run, made: Event) -> bool:
    """Whether it may call a closure more than once: each of its steps has many, unless told."""
    kept, what = run.vm.store, made.values["object"].what
    steps, line = (kept.get((what, each)) or NONE for each in ("#max_iter", "#line_search_fn"))
    return not (steps.is_const(1) and line.is_const(None))
