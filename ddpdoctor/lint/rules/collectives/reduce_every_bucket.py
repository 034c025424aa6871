"""A communication hook that reduces some buckets alone.

## What it does
Finds functions given to `register_comm_hook` that join a collective, or another one, only if what
this rank's own gradients are says so: all zero, not finite, small.

## Why is this bad?
DDP calls the hook for each bucket of each backward, on every rank. Who leaves the reduction of a
bucket out goes on to the next; the others wait for it, or get the numbers of another bucket.

## Example
```python
def hook(group, bucket):
    grads = bucket.buffer()
    if not grads.any():
        done = torch.futures.Future()
        done.set_result(grads)
        return done
    return default_hooks.allreduce_hook(group, bucket)

ddp.register_comm_hook(None, hook)
```

## Use instead
```python
def hook(group, bucket):
    return default_hooks.allreduce_hook(group, bucket)

ddp.register_comm_hook(None, hook)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run, run_hook
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Node, Way, events, walk
from ddpdoctor.lint.engine.interpreter.values import NONE, Term, Value, within
from ddpdoctor.lint.engine.libraries.torch import OF_THE_SHAPE
from ddpdoctor.lint.engine.queries.partings import all_met, leaves
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP418", name="data-dependent-collective", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield the conditions of this rank's own by which a hook leaves a collective out."""
    told: set[int] = set()
    for event, _ in events(run.root, "comm_hook"):
        hook, state = (event.values.get(each, NONE) for each in ("hook", "state"))
        done = run_hook(run, hook, state, event.node)
        for node, way in walk(done) if done is not None else ():
            if not isinstance(node, Choice) or not _is_own(node.condition):
                continue
            missed = _left_out(node, way)
            if missed is None or id(node.test) in told:
                continue
            told.add(id(node.test))
            yield Hit(
                node.test,
                f"a rank leaves {missed.name}() of a bucket out by what its own gradients are",
                notes=(
                    Related.at(missed.place, "the others wait for it here"),
                    Related.at(event.place, "DDP calls this for each bucket of each backward"),
                ),
                why=node.condition.why,
                help="reduce every bucket on every rank: zeros cost little",
                path=node.path,
            )


def _is_own(condition: Value) -> bool:
    """Whether the numbers of this rank decide: their shape is the same on all."""
    if condition.agree.kind != "local" or condition.agree.cause != "data":
        return False
    asked = [each for each in within(condition.what) if isinstance(each, Term)]
    of_shape = any(each.op == "call" and each.args[0] in OF_THE_SHAPE for each in asked)
    return not of_shape and not any(each.op == "of" for each in asked)


def _left_out(choice: Choice, way: Way) -> Event | None:
    """The collective that one of two ways has, and the other has not."""
    after: list[Node] = [node for step in reversed(way) for node in step.rest]
    done = []
    for arm in choice.arms:
        left = leaves(arm.body)
        if left is not None and left.kind != "return":
            return None  # an error ends the job
        items = [*arm.body.items, *(after if left is None else ())]
        done.append([e.event for e in all_met(items, lambda e: e.kind == "collective")])
    most = max(done, key=len)
    fewest = [each.name for each in min(done, key=len)]
    return next((each for each in most if most and each.name not in fewest), None)
