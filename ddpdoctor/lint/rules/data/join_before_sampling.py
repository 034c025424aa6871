"""Sampler before the process group.

## What it does
Finds a `DistributedSampler` built, directly or in a function that is called, before the call of
`init_process_group` that comes later.

## Why is this bad?
Without `num_replicas` and `rank` the sampler asks the default process group, which does not exist
yet: "Default process group has not been initialized".

## Example
```python
loader = make_loader()          # builds a DistributedSampler
dist.init_process_group("gloo")
```

## Use instead
```python
dist.init_process_group("gloo")
loader = make_loader()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Event, events
from ddpdoctor.lint.engine.queries.order import beyond, is_after, is_sure
from ddpdoctor.lint.engine.queries.sharding import SAMPLER
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP201", name="premature-sampler", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield samplers that are built before the group they ask."""
    joins = [(event, way) for event, way in events(run.root, "init")]
    asks = [way for _, way in events(run.root, "ask")]
    for event, way in events(run.root, "new") if joins else ():
        if not event.name.endswith(SAMPLER) or not _asks_the_group(event):
            continue
        if any(is_after(each, way) for each in (*asks, *(to for _, to in joins))):
            continue
        first = next(((join, to) for join, to in joins if is_after(way, to)), None)
        if first is None:
            continue
        join, to = first
        calls = [step.node for step in beyond(way, to) if isinstance(step.node, Called)]
        yield Hit(
            calls[0].node if calls else event.node,
            "a DistributedSampler is built here, before the process group exists",
            notes=(*_chain(calls, event), Related.at(join.place, "the group is initialised")),
            help="initialise the process group first, or pass num_replicas and rank",
            confidence=None if is_sure(way) and is_sure(to) else "likely",
            path=calls[0].path if calls else event.path,
        )


def _asks_the_group(event: Event) -> bool:
    given = event.values.keys()
    return "rest" not in given and not {"num_replicas", "rank"} <= given


def _chain(calls: list[Called], event: Event) -> tuple[Related, ...]:
    """Through whom it is built, for people."""
    if not calls:
        return ()
    names = " calls ".join(f"{each.name}()" for each in calls)
    return (Related.at(event.place, f"{names} builds it"),)
