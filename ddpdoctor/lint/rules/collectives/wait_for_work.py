"""Asynchronous work that nobody waits for.

## What it does
Finds `async_op=True`, `isend` and `irecv` whose result is thrown away or never used, or put into a
list that nobody goes through.

## Why is this bad?
Until `wait()` returns, the tensor may be read half-written or freed while it is being sent.
Nothing raises: the numbers are wrong, sometimes.

## Example
```python
dist.all_reduce(loss, async_op=True)
print(loss)
```

## Use instead
```python
work = dist.all_reduce(loss, async_op=True)
work.wait()
print(loss)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Event, Exit, Way, events, walk
from ddpdoctor.lint.engine.interpreter.values import NONE, OPEN, TRUE, text
from ddpdoctor.lint.engine.queries.sharding import numbers
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP414", name="work-not-awaited", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield asynchronous calls whose work is lost."""
    started: dict[int, Event] = {}
    lost: set[int] = set()
    listed: set[int] = set()
    begun: dict[int, Way] = {}
    for event, way in events(run.root, "collective", "new", "dropped", "keep", "wait"):
        if event.kind == "collective" and event.name.rpartition(".")[2] == "barrier":
            lost -= {
                each
                for each in lost & started.keys()
                if _is_behind(way, begun[each]) and _waits_for(run, event, started[each])
            }
        if event.kind == "keep":
            kept = numbers(event.values["value"]) & started.keys()
            if kept and not _is_seen_by_others(run, kept | numbers(event.values["owner"])):
                listed |= kept
                lost |= kept
            continue
        works = numbers(event.values.get("work"))
        if event.values.get("async_op", TRUE).constant is OPEN:
            continue  # who calls with it says so, and perhaps nobody does
        if event.kind == "dropped":
            lost |= works
        elif event.kind == "wait":
            lost -= works
        elif works:
            started.update(dict.fromkeys(works, event))
            begun.update(dict.fromkeys(works, way))
            lost |= works if _is_never_read(run, event) else set()
    told = {id(started[number].node): number for number in sorted(lost & started.keys())}
    for number in told.values():
        event = started[number]
        name = event.name.rpartition(".")[2]
        yield Hit(
            event.node,
            f"the work of {name}() is never waited for: its tensor may be half-written",
            help="keep the work and call `.wait()` before the tensor is used",
            confidence="likely" if number in listed else None,
            path=event.path,
        )


def _is_behind(way: Way, other: Way) -> bool:
    """Whether who has come along the other way comes here as well, before what called both ends."""
    for depth, (one, two) in enumerate(zip(way, other, strict=False)):
        if one.seq is not two.seq:
            return False
        if one.index != two.index:
            calls = (step.node for step in way[depth:-1])
            return one.index > two.index and all(isinstance(each, Called) for each in calls)
    return False


def _waits_for(run: Run, barrier: Event, started: Event) -> bool:
    """Whether a barrier comes before anybody looks at what is on its way in the same group.

    It ends when all has ended that was begun before it.
    """
    return (
        started.kind == barrier.kind
        and not numbers(barrier.values.get("work"))
        and started.values.get("group", NONE) == barrier.values.get("group", NONE)
        and not _is_looked_at(run, started, barrier)
    )


def _is_looked_at(run: Run, started: Event, barrier: Event) -> bool:
    """Whether anything that a call is given is read before a barrier, but to put it in a list."""
    source, node = run.source(started.path), started.node
    function = source.function(node) if source is not None else None
    if function is None or not isinstance(node, ast.Call):
        return True
    given = {text(x) for each in (*node.args, *node.keywords) for x in _with_whole(each)}
    within = list(ast.walk(function))
    end = _begin(barrier.node) if barrier.node in within else _end(function)
    between = [
        each for each in within if isinstance(each, ast.expr) and _end(node) < _begin(each) < end
    ]
    put = {
        id(only)
        for each in between
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "append"
        for only in each.args
    }
    return any(id(each) not in put and text(each) in given for each in between)


def _with_whole(given: ast.AST) -> Iterator[ast.AST]:
    """What a call is given, and what that is a slice of: who reads that, reads it as well."""
    each = given.value if isinstance(given, ast.keyword) else given
    yield each
    while isinstance(each, ast.Subscript) and isinstance(each.slice, ast.Slice):
        each = each.value
        yield each


def _begin(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _end(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)


def _is_seen_by_others(run: Run, kept: set[int]) -> bool:
    """Whether any of these objects may be waited for where nobody looks: it is held, or handed on.

    Those that this program asks of each other are seen here.
    """
    if run.spent or kept & run.vm.handed:
        return True
    if run.is_entry:
        return False
    # Of a method that is run alone, other methods of its object may do it.
    held = (each for named in run.vm.store.held().values() for each in named.items())
    if "." in run.name and any(numbers(value) & kept for name, value in held if name != "[]"):
        return True
    exits = (node for node, way in walk(run.root) if isinstance(node, Exit) and len(way) < _OUT)
    return any(numbers(each.value) & kept for each in exits)


_OUT = 4
"""As far from the beginning whoever calls what nobody is seen to call may be told by a return."""


def _is_never_read(run: Run, event: Event) -> bool:
    """Whether the call is bound to a name that its function never reads."""
    source = run.source(event.path)
    for function in source.nodes if source is not None else ():
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is event.node:
                    return name != "_" and not _reads(function, name)
    return False


def _reads(function: ast.AST, name: str) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
        for each in ast.walk(function)
    )
