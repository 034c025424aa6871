"""Process group that is asked before it is there, or when it is gone.

## What it does
Finds a collective, a wrap, `get_rank()` or `get_world_size()` that the program comes to before
`init_process_group`, or after `destroy_process_group`: in the body of a class or a default that is
evaluated when the file is read, or in what is closed behind the group.

## Why is this bad?
There is no default process group then: "Default process group has not been initialized, please make
sure to call init_process_group."

## Example
```python
dist.destroy_process_group()
dist.all_reduce(total)
```

## Use instead
```python
dist.all_reduce(total)
dist.destroy_process_group()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Step, Way, events
from ddpdoctor.lint.engine.queries.doing import in_try
from ddpdoctor.lint.engine.queries.order import beyond, is_after
from ddpdoctor.lint.engine.queries.words import is_world
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP201", name="premature-sampler", confidence="likely")

_ASKS = ("collective", "wrap", "query", "group")
_ELSEWHERE = "mpi."
"""Before what goes through MPI, which needs no process group of torch's."""
_LIVES = ("init", "leave", "ask", "prepare", "spawn")


def check(run: Run) -> Iterator[Hit]:
    """Yield what asks the group outside of its life."""
    if not run.is_entry:
        return
    lives = list(events(run.root, *_LIVES))
    joins = [(event, way) for event, way in lives if event.kind == "init"]
    asks = [event for event, _ in lives if event.kind == "ask"]
    told: set[ast.AST] = set()
    for event, way in events(run.root, *_ASKS) if joins else ():
        if event.node in told or event.name.startswith(_ELSEWHERE):
            continue
        if in_try(way) or not is_world(event.values.get("group")):
            continue
        found = _behind(event, way, lives) or (None if asks else _before(way, joins))
        if found is None:
            continue
        other, said = found
        told.add(event.node)
        yield Hit(
            event.node,
            f"{event.name}() asks the process group, which {said}",
            notes=(Related.at(other.place, "here"),),
            help="communicate between init_process_group and destroy_process_group",
            path=event.path,
        )


def _before(way: Way, joins: list[tuple[Event, Way]]) -> tuple[Event, str] | None:
    """The first joining, where all of it comes later and nothing decides whether it does."""
    if any(is_after(to, way) for _, to in joins):
        return None
    later = [(join, to) for join, to in joins if is_after(way, to)]
    if len(later) < len(joins) or any(map(_decides, (*later[0][1], *way))):
        return None
    return later[0][0], "is not joined before"


def _behind(event: Event, way: Way, lives: list[tuple[Event, Way]]) -> tuple[Event, str] | None:
    """The leaving behind which it surely comes, if nobody joins or asks in between."""
    left: Event | None = None
    for each, to in lives:
        if not is_after(to, way):
            continue
        if each.kind != "leave":
            left = None
        elif is_world(each.values.get("group")) and not any(map(_decides, _own(to, way))):
            left = each
    return (left, "is gone by then") if left is not None else None


def _own(leave: Way, way: Way) -> Way:
    """The steps of a leaving that what comes later does not share."""
    return tuple(step for step in beyond(leave, way) if step in leave)


def _decides(step: Step) -> bool:
    return isinstance(step.node, Choice)
