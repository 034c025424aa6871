"""A process group that is joined twice.

## What it does
Finds two ways to `init_process_group` that one process surely goes, with no
`destroy_process_group` between them; a loop that joins in each of its rounds is one of both.

## Why is this bad?
"trying to initialize the default process group twice!": every rank crashes at the second.

## Example
```python
dist.init_process_group("nccl")
logger = Logger()  # joins too, to learn its rank
```

## Use instead
```python
if not dist.is_initialized():
    dist.init_process_group("nccl")
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Event, Exit, Loop, Way, events, walk
from ddpdoctor.lint.engine.interpreter.values import text
from ddpdoctor.lint.engine.queries.order import is_after, is_spawned, is_sure
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP102", name="double-init", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield the second way into the group."""
    yield from _joined_in_each_round(run)
    joined: tuple[Event, Way] | None = None
    for event, way in events(run.root, "init", "leave"):
        if event.kind == "leave":
            joined = None
        elif is_sure(way):
            if joined is not None and is_after(joined[1], way):
                yield Hit(
                    event.node,
                    "the process group is joined twice: the second time raises",
                    notes=_apart(joined[1], way),
                    help="join in one place, or ask `dist.is_initialized()` first",
                    path=event.path,
                )
                return
            joined = event, way


def _joined_in_each_round(run: Run) -> Iterator[Hit]:
    for event, way in events(run.root, "init"):
        depth = next((n for n, step in enumerate(way) if isinstance(step.node, Loop)), None)
        loop = way[depth].node if depth is not None else None
        if depth is None or not isinstance(loop, Loop) or not is_sure(way[depth + 1 :]):
            continue
        again = loop.rounds > 1 and is_sure(way[:depth])  # else it may be for one process only
        over = loop.rounds == 1 or _ends(loop) or is_spawned(way[depth:])
        if not over and not any(True for _ in events(loop.body, "ask", "leave")):
            yield Hit(
                event.node,
                "the process group is joined in every round of a loop: the second time raises",
                notes=(Related.at(loop.place, "the loop"),),
                help="join before the loop, or destroy_process_group() at the end of each round",
                confidence="certain" if again else "likely",
                path=event.path,
            )
            return


def _ends(loop: Loop) -> bool:
    """Whether a round may be the last."""
    return any(
        isinstance(node, Exit)
        and node.kind in ("break", "return", "end")
        and (node.kind == "end" or not any(isinstance(step.node, Called) for step in way))
        for node, way in walk(loop.body)
    )


def _apart(first: Way, second: Way) -> tuple[Related, ...]:
    """Both, from where their ways part."""
    at = next(n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a.index != b.index)
    nodes = ("first", first[at].node), ("then", second[at].node)
    return tuple(
        Related.at(node.place, f"{when} by `{text(node.node, 40)}`") for when, node in nodes
    )
