"""Collectives or parameters in the order of a set.

## What it does
Finds loops over a set (or over `os.listdir`) whose body runs a collective or registers parameters,
loops with a collective over a dictionary that this rank filled with names as its own data came,
and what was put into one tensor in such an order and is then reduced, gathered or sent.

## Why is this bad?
The order of a set of strings differs between processes (hash randomisation), that of a folder
between machines: the ranks run the same collectives in different orders, and wait for each other
or mix up what they reduce.

## Example
```python
for name in set(metrics):
    dist.all_reduce(metrics[name])
```

## Use instead
```python
for name in sorted(metrics):
    dist.all_reduce(metrics[name])
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.objects import containers
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Event, Loop, Node, Seq, events, walk
from ddpdoctor.lint.engine.interpreter.values import NOTHING, Term, Tuple, Value, Why
from ddpdoctor.lint.engine.queries.doing import is_the_starters
from ddpdoctor.lint.engine.queries.naming import name_of
from ddpdoctor.lint.engine.queries.partings import all_met, hearing, partings
from ddpdoctor.lint.engine.queries.rows import PUTS_TOGETHER, as_it_comes, with_all_rows
from ddpdoctor.lint.engine.queries.telling import decides, decision, operation
from ddpdoctor.lint.rule import About, Edit, Fix, Hit, Related

ABOUT = About(code="DDP413", name="unordered-collectives", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield the loops whose order the ranks do not share, and what was packed in such an order."""
    found = [
        event
        for event, _ in events(run.root, "iterate")
        if as_it_comes(event).agree.cause == "order" and not _has_an_order(event)
    ]
    orders = {id(event.node): event for event in found}
    yield from _as_met(run)
    yield from _packed(run, orders)
    for node, way in walk(run.root):
        if isinstance(node, Loop) and id(node.node) in orders and not is_the_starters(way):
            loop, event = node.node, way[-1].begun or orders[id(node.node)]
            if event not in found or any(step.begun in found for step in way[:-1]):
                continue  # what it goes through has an order, or has none for an outer loop's sake
            over = as_it_comes(event)
            if not isinstance(loop, ast.For | ast.AsyncFor):
                continue
            registers = any(
                _registers(run, each, node.body)
                for each, to in walk(node.body)
                # What a lone function calls in each round may make a model of its own.
                if run.is_entry or not any(isinstance(step.node, Called) for step in to)
            )
            heard = {each.event.kind for each in all_met(node.body.items, hearing(run).hears)}
            if not registers and heard <= {"forward", "backward"}:
                continue  # all of them reduce the same, whatever a rank trains on
            done = "parameters are registered" if registers else "collectives run"
            text = run.source(event.path)
            fix = _sorted(loop.iter, text.lines) if text is not None else None
            yield Hit(
                loop.iter,
                f"{done} in an order that differs between ranks",
                why=over.why,
                help="sort: `for ... in sorted(...)`",
                fix=fix,
                confidence="certain" if over.agree.sure else "likely",
                path=event.path,
            )


def _as_met(run: Run) -> Iterator[Hit]:
    for parting in partings(run):
        if name_of(run, parting) == ABOUT.code:
            node, path = decision(run, parting)
            yield Hit(
                node,
                f"{operation(parting.met[0])} runs in the order in which this rank met its data",
                notes=(decides(parting),),
                why=parting.why,
                help="agree on the keys and their order first, or reduce one fixed-size tensor",
                confidence="likely",
                path=path,
            )


def _packed(run: Run, orders: dict[int, Event]) -> Iterator[Hit]:
    told: set[int] = set()
    for event, _ in events(run.root, "collective"):
        for role in (each for each in _GIVEN if each in event.values):
            for made in with_all_rows(run, event.values[role]):
                if made.by not in PUTS_TOGETHER or not made.of or id(made.node) in told:
                    continue
                order = _order(run, made.of[0], orders)
                if order is None:
                    continue
                told.add(id(made.node))
                yield Hit(
                    made.node,
                    f"what {event.name}() is given is in an order that differs between ranks",
                    notes=(Related.at(event.place, "here it meets what others have put there"),),
                    why=order,
                    help="sort: `for ... in sorted(...)`",
                    confidence="likely",
                    path=made.path,
                )


def _order(run: Run, parts: Value, orders: dict[int, Event]) -> Why | None:
    """Why the parts of a list stand in an order that differs between ranks."""
    content = containers.content(run.vm, parts)
    if content is not None and content.agree.cause == "order":
        return content.why
    held = {each.what for each in containers.held(content or parts)} - {NOTHING}
    for event, way in events(run.root, "keep"):
        for step in way if event.values["value"].what in held else ():
            if isinstance(step.node, Loop) and id(step.node.node) in orders:
                return as_it_comes(orders[id(step.node.node)]).why
    return None


_GIVEN = ("gives", "collects", "shares")


def _has_an_order(event: Event) -> bool:
    """Whether a loop counts, or goes through things that were put there one by one.

    Numbers come one after the other wherever they begin. What was computed from a set may be
    another value on each rank, and stands at the same place nevertheless.
    """
    over = event.values["over"].what
    counts = isinstance(over, Term) and over.op in ("range", "enumerate")
    return counts or isinstance(event.values["content"].what, Tuple)


def _registers(run: Run, node: Node, inside: Seq) -> bool:
    """Whether a module that was made before the loop is given another part."""
    if not isinstance(node, Event):
        return False
    if node.kind == "register":
        owner = node.values.get("object")
    elif node.kind == "set_attribute" and _is_a_module(run, node.values["value"]):
        owner = node.values["owner"]
    else:
        return False
    made = (each.values["object"] for each, _ in events(inside, "make", "new"))
    return owner is None or all(each.what != owner.what for each in made)


def _is_a_module(run: Run, value: Value) -> bool:
    return run.vm.type_of(value) == "torch.nn.Module"


def _sorted(node: ast.expr, lines: list[str]) -> Fix:
    from ddpdoctor.lint.rule import characters

    start = (node.lineno, characters(lines[node.lineno - 1], node.col_offset))
    last = node.end_lineno or node.lineno
    end = (last, characters(lines[last - 1], node.end_col_offset or 0))
    return Fix((Edit(start, start, "sorted("), Edit(end, end, ")")))
