"""no_sync and the step disagree.

## What it does
Compares the condition that enters `no_sync` with the one that steps the optimizer, where both
count batches modulo k.

## Why is this bad?
If the micro-batch before the step ran inside `no_sync`, the optimizer steps on this rank's own
gradients: the models part, silently.

## Example
```python
sync = i % k == 0
with nullcontext() if sync else model.no_sync():
    model(x).backward()
if (i + 1) % k == 0:
    optimizer.step()
```

## Use instead
```python
sync = (i + 1) % k == 0
with nullcontext() if sync else model.no_sync():
    model(x).backward()
if sync:
    optimizer.step()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Choice, Event, events
from ddpdoctor.lint.engine.interpreter.values import NONE
from ddpdoctor.lint.engine.queries.reducing import FLAG, Unreduced, unreduced
from ddpdoctor.lint.rule import About, Confidence, Hit, Related

ABOUT = About(code="DDP315", name="accumulation-off-by-one", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield steps whose last backward did not reduce."""
    for each in unreduced(run):
        if each.event.kind != "step":
            continue
        confidence: Confidence = "certain" if each.sure else "likely"
        if each.by.name == FLAG:
            yield Hit(
                each.by.node,
                "the last micro-batch before the step is not reduced: what is added stays local",
                notes=(Related.at(each.event.place, "the optimizer steps"),),
                help="synchronise on the last micro-batch of the window",
                path=each.by.path,
                confidence=confidence,
            )
            continue
        held = None if each.ever else _held_back(run)
        if held is not None:
            yield Hit(
                held.test,
                "no_sync holds back the micro-batch before the step, and lets another be reduced",
                notes=(Related.at(each.event.place, "the optimizer steps"),),
                help="one condition for both: no_sync exactly where the optimizer does not step",
                path=held.path,
                confidence=confidence,
            )
            continue
        choice = each.choices[-1] if each.choices else None
        yield Hit(
            choice.test if choice else each.event.node,
            "the optimizer steps on a micro-batch whose gradients were not reduced",
            notes=(
                *_entered(run, each),
                Related.at(each.by.place, "no_sync keeps its backward back"),
                *_made(run, each.by),
            ),
            help="one condition for both: no_sync exactly where the optimizer does not step",
            path=choice.path if choice else each.event.path,
            confidence=confidence,
        )


def _entered(run: Run, found: Unreduced) -> Iterator[Related]:
    """The call that leads to `no_sync`, seen from where the optimizer steps."""
    ways = {event: way for event, way in events(run.root) if event in (found.by, found.event)}
    at, to = ways[found.by], ways[found.event]
    shared = sum(1 for here, there in zip(at, to, strict=False) if here.node is there.node)
    called = next((step.node for step in at[shared:] if isinstance(step.node, Called)), None)
    if called is not None:
        yield Related.at(called.place, f"{called.name}() enters no_sync")


def _made(run: Run, entered: Event) -> Iterator[Related]:
    """Where the `no_sync` was made that is entered, and with it decided, if that is elsewhere."""
    scope = entered.values.get("scope", NONE)
    managers = [each.what for each in run.vm.store.options(scope)]
    for event, _ in events(run.root, "scope"):
        is_one = event.name == "no_sync" and event.values["scope"].what in managers
        if is_one and event.place != entered.place:
            yield Related.at(event.place, "here it is decided which backwards it keeps back")


def _held_back(run: Run) -> Choice | None:
    """The single condition by which a program enters `no_sync`."""
    found: dict[int, Choice] = {}
    for event, way in events(run.root, "scope"):
        choices = [step.node for step in way if isinstance(step.node, Choice)]
        if event.name == "no_sync" and choices:
            found[id(choices[-1].test)] = choices[-1]
    return found.popitem()[1] if len(found) == 1 else None
