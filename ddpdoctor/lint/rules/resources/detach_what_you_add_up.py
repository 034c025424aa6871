"""Running total that keeps the graph.

## What it does
Finds `total += loss` in a training loop of distributed code, without `.detach()` or `.item()`.

## Why is this bad?
The total holds on to the graph of every step: memory grows until one rank runs out, and the others
wait for it.

## Example
```python
loss.backward()
total += loss
```

## Use instead
```python
loss.backward()
total += loss.detach()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from ddpdoctor.lint.edits import replace
from ddpdoctor.lint.engine.interpreter.machine import EITHER, Object
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Choice, Event, Loop, Seq, Way, events
from ddpdoctor.lint.engine.interpreter.values import Const, Tensor, Term, Tuple, Value, What, text
from ddpdoctor.lint.engine.queries.doing import function_of
from ddpdoctor.lint.engine.queries.holding import conditions
from ddpdoctor.lint.engine.queries.sharding import loops, of_many_ranks
from ddpdoctor.lint.engine.queries.wrapping import (
    computed_from,
    made_by,
    mentioned,
    parts,
    wrappers,
)
from ddpdoctor.lint.rule import About, Fix, Hit

ABOUT = About(code="DDP601", name="retained-graph", confidence="likely")

_ARITHMETIC = ("Mult", "Div", "Add", "Sub", EITHER)
_KEEPS = (
    *(*_ARITHMETIC, "Pow", "USub", "item", "slice", "stack", "cat", "view", "reshape", "squeeze"),
    *("unsqueeze", "flatten", "mean", "sum", "norm", "square", "sqrt", "pow", "abs", "exp", "log"),
    *("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "cross_entropy", "nll_loss", "kl_div"),
)
"""What is computed so still has a graph."""


def check(run: Run) -> Iterator[Hit]:
    """Yield sums over losses that still have their graph."""
    if not of_many_ranks(run):
        return
    backwards = list(events(run.root, "backward"))
    yield from _kept(run, backwards)
    losses_of_all = [each.values["loss"] for each, _ in backwards]
    summed = {id(step.node) for each in losses_of_all for _, step in computed_from(run, each)}
    for event, way in events(run.root, "add_up"):
        node, value = event.node, event.values["value"]
        around = _trained_in(way, backwards)
        if around is None or "no_grad" in event.scopes or _begins_anew(run, event, way, around):
            continue
        if isinstance(node, ast.AugAssign) and (
            not isinstance(node.op, ast.Add) or _is_told_a_number(way, node.value)
        ):
            continue
        losses = [
            part
            for each, to in backwards
            if around is _innermost(to)
            for part in _parts(run, each.values["loss"], 3)
        ]
        if not any(_keeps(run, value, loss, 4) for loss in losses):
            continue
        if id(node) in summed or any(_is_of(each, event) for each, _ in backwards):
            continue
        if not isinstance(node, ast.AugAssign):
            old = event.values["old"]
            if not _keeps(run, old, value, 6) or any(
                _keeps(run, each, value, 6) for each in losses
            ):
                continue
            total = text(_target(node))
            yield Hit(
                node,
                f"`{total}` goes on from itself with the graph of every step: memory grows",
                help="add `.detach()` to what is averaged",
                path=event.path,
            )
            continue
        loss, total = _named(node.value), text(node.target)
        yield Hit(
            node,
            f"`{total} += {loss}` keeps the graph of every step: memory grows",
            help=f"`{total} += {loss}.detach()`",
            fix=_fix(run, event, node.value),
            path=event.path,
        )


def _is_told_a_number(way: Way, value: ast.expr) -> bool:
    """Whether it stands where this was asked to be one of Python's numbers, which have no graph."""
    wanted = ast.dump(value)
    for step, below in pairwise(way):
        choice = step.node
        if isinstance(choice, Choice) and isinstance(choice.node, ast.If):
            holds = next((arm.holds for arm in choice.arms if arm.body is below.seq), None)
            test = choice.node.test
            if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                test, holds = test.operand, holds is False
            asked = test.values if isinstance(test, ast.BoolOp) else [test]
            if holds and all(_asks_for_a_number(each, wanted) for each in asked):
                return True
    return False


def _asks_for_a_number(test: ast.expr, wanted: str) -> bool:
    match test:
        case (
            ast.Compare(
                left=ast.Call(func=ast.Name(id="type"), args=[asked]),
                ops=[ast.Eq() | ast.Is() | ast.In()],
                comparators=[kinds],
            )
            | ast.Call(func=ast.Name(id="isinstance"), args=[asked, kinds])
        ):
            named = {each.id for each in ast.walk(kinds) if isinstance(each, ast.Name)}
            return ast.dump(asked) == wanted and bool(named) and named <= {"int", "float", "bool"}
    return False


def _trained_in(way: Way, backwards: list[tuple[Event, Way]]) -> Loop | None:
    """The innermost loop around that goes backward itself: what it does in one round adds up."""
    trained = [id(loop) for _, to in backwards if (loop := _innermost(to)) is not None]
    return next((loop for loop in reversed(loops(way)) if id(loop) in trained), None)


def _begins_anew(run: Run, event: Event, way: Way, around: Loop) -> bool:
    """Whether what is added to was set in the same round of the loop."""
    old = event.values["old"].what
    if isinstance(old, Const) or (isinstance(old, Term) and old.op in _ARITHMETIC):
        return True
    holder = run.vm.object(event.values["owner"]) if "owner" in event.values else None
    calls: list[Event | Called] = [step.node for step in way if isinstance(step.node, Called)]
    if holder is not None and any(
        _is_of_one_call(run, holder, each, around) for each in (event, *calls)
    ):
        return True
    made = run.vm.made.get(old)
    if made is None or made.by == EITHER or made.node is event.node:
        return False
    return any(each is made.node for each in ast.walk(around.node))


def _kept(run: Run, backwards: list[tuple[Event, Way]]) -> Iterator[Hit]:
    """Lists that outlive a loop of backwards, and are given what has a graph in each round."""
    told: set[int] = set()
    learnt = _learnt(run)
    for event, way in events(run.root, "keep"):
        made, node = _list_of(run, event.values["owner"]), event.node
        if made is None or id(node) in told or "no_grad" in event.scopes:
            continue
        if not isinstance(made.node, ast.List | ast.Call) or not isinstance(node, ast.Call):
            continue
        kept = event.values["value"]
        for backward, to in backwards:
            loop = _shared(way, to)
            if loop is None or _may_not_grow(run, event, way, loop):
                continue
            if _is_of_one_step(run, made, way, loop):
                continue
            losses = list(_parts(run, backward.values["loss"], 3))
            each = kept.what.items if isinstance(kept.what, Tuple) else (kept,)
            if not any(_keeps(run, one, part, 4) for one in each for part in losses) and not any(
                _has_graph(run, one, learnt, 12) for one in each
            ):
                continue
            told.add(id(node))
            yield Hit(
                node,
                f"`{text(node)}` keeps the graph of every step: memory grows",
                help="append what is detached: `.detach()`, or `.item()`",
                path=event.path,
            )
            break


def _learnt(run: Run) -> set[int]:
    """The modules that are trained, and their wrappers."""
    return {part for module in wrappers(run) for part in parts(run, module)}


def _has_graph(run: Run, value: Value, learnt: set[int], depth: int) -> bool:
    """Whether a value is computed from what is trained, by what keeps its graph."""
    made = run.vm.made.get(value.what)
    if made is None or not depth or not {abs(each) for each in made_by(value)} & learnt:
        return False
    if made.by == "forward":
        return True
    return made.by in _KEEPS and any(_has_graph(run, one, learnt, depth - 1) for one in made.of)


def _list_of(run: Run, value: Value) -> Object | None:
    """A list, or the defaultdict that has made it for a key."""
    made = run.vm.object(value)
    if made is None or not isinstance(made.node, ast.Subscript):
        return made
    holders = (
        owner
        for owner, kept in run.vm.store.held().items()
        if any(each.what == value.what for name, each in kept.items() if name.startswith("["))
    )
    holder = next(holders, None)
    return run.vm.objects[holder.number] if holder is not None else None


def _outlives(run: Run, made: Object, loop: Loop, way: Way) -> bool:
    """Whether a list is there before a loop, and is the same in all its rounds."""
    place = next(number for number, step in enumerate(way) if step.node is loop)
    around = (step.node for step in way[: place + 1])
    callers = [function_of(run, each) for each in around if isinstance(each, Called | Loop)]
    if any(function_of(run, made) is each for each in callers):
        return True
    sets = [
        event
        for event, _ in events(run.root, "set_attribute")
        if (at := run.vm.object(event.values["value"])) is not None and at.node is made.node
    ]
    again = [event for event, _ in events(loop.body, "set_attribute") if event in sets]
    return bool(sets) and not again


def _shared(one: Way, other: Way) -> Loop | None:
    """The innermost loop around both."""
    mine = {id(step.node) for step in one}
    around = (step.node for step in reversed(other) if isinstance(step.node, Loop))
    return next((each for each in around if id(each) in mine), None)


def _is_of_one_step(run: Run, made: Object, way: Way, loop: Loop) -> bool:
    """Whether a loop goes through the parts of one step, for which a list is made anew."""
    stepping = {id(each): each for _, to in events(run.root, "step") for each in loops(to)}
    around = loops(way)
    outer = next((each for each in reversed(around) if id(each) in stepping), None)
    if outer is None or outer not in around[: around.index(loop)]:
        return False
    if any(each is made.node for each in _run_in_a_round(run, outer, way)):
        return True
    return _is_of_one_call(run, made, loop, outer)


def _run_in_a_round(run: Run, loop: Loop, way: Way) -> Iterator[ast.AST]:
    """What stands in a loop, and in one that goes through the generator whose loop it is."""
    yield from ast.walk(loop.node)
    for step in way:
        if step.node is loop:
            return
        text_of = (
            run.vm.program.loader.text(step.node.path) if isinstance(step.node, Called) else None
        )
        for each in text_of.nodes if text_of is not None else ():
            if isinstance(each, ast.For | ast.AsyncFor) and each.iter is step.node.node:
                yield from ast.walk(each)


def _is_of_one_call(run: Run, made: Object, within: Event | Loop | Called, around: Loop) -> bool:
    """Whether something is made by the same call of a function, which a loop makes each round."""
    inner = function_of(run, within)
    return function_of(run, made) is inner and function_of(run, around) is not inner


def _may_not_grow(run: Run, keep: Event, way: Way, loop: Loop) -> bool:
    """Whether a list is another one in each round, is taken from in it, or is asked before."""
    same = [each for each, _ in events(loop.body, "keep") if each.node is keep.node]
    lists = [each.values["owner"] for each in same]
    made = [found for each in lists if (found := _list_of(run, each)) is not None]
    limits = [each.node for each in made if isinstance(each.node, ast.Call)]
    if any(each.keywords or len(each.args) > 1 for each in limits):
        return True  # a deque of so many
    inside = {id(each) for each in _run_in_a_round(run, loop, way)}
    if any(id(each.node) in inside or not _outlives(run, each, loop, way) for each in made):
        return True
    if any(each.values["owner"] in lists for each, _ in events(loop.body, "take")):
        return True
    names = {each.what for each in lists}
    asked = [step.node.condition for step in way if isinstance(step.node, Choice)]
    if any(not mentioned(run, each).isdisjoint(names) for each in asked):
        return True
    depth = next(n for n, step in enumerate(way) if step.node is loop)
    growing = _growing(run, loop, way[-1].seq)
    return any(_ends(what, holds, growing) for what, holds in conditions(way[depth + 1 :]))


def _growing(run: Run, loop: Loop, beside: Seq) -> set[What]:
    """The numbers that grow in every round of a loop, or whenever something is done."""
    raised = {
        event.values["old"].what
        for event, way in events(loop.body, "add_up")
        if way[-1].seq is beside
        and isinstance(getattr(event.node, "op", None), ast.Add)
        and _is_positive(event.values["value"].constant)
    }
    elements = [
        event.values["element"]
        for event, _ in events(run.root, "iterate")
        if event.node is loop.node
    ]
    counters = {
        what
        for each in elements
        for what in mentioned(run, each)
        if isinstance(what, Term) and what.op == "counter"
    }
    return (
        counters | raised | {what for what, (_, added) in loop.counted.items() if (added or 0) > 0}
    )


def _is_positive(number: object) -> bool:
    return isinstance(number, int | float) and number > 0


def _ends(what: object, holds: bool, growing: set[What]) -> bool:
    """Whether a condition does not hold for ever, or hold not for ever: what grows gets past it."""
    if not isinstance(what, Term):
        return False
    if what.op == "not":
        return _ends(what.args[0], not holds, growing)
    if what.op == ("and" if holds else "or"):
        return any(_ends(each, holds, growing) for each in what.args)
    if what.op in ("Eq", "NotEq"):
        return holds == (what.op == "Eq") and any(_grows(each, growing) for each in what.args)
    if what.op not in ("Lt", "LtE", "Gt", "GtE"):
        return False
    less, more = what.args if what.op in ("Lt", "LtE") else reversed(what.args)
    return _grows(less if holds else more, growing) and not _grows(more if holds else less, growing)


def _grows(what: object, growing: set[What]) -> bool:
    """Whether it is a number that grows, or one with something added to it."""
    if isinstance(what, Term) and what.op in ("Add", "Sub"):
        return _grows(what.args[0], growing) or (what.op == "Add" and what.args[1] in growing)
    return what in growing


def _innermost(way: Way) -> Loop | None:
    return next((step.node for step in reversed(way) if isinstance(step.node, Loop)), None)


def _parts(run: Run, loss: Value, depth: int) -> Iterator[Value]:
    """A loss, and those of which it was computed before its backward."""
    yield loss
    made = run.vm.made.get(loss.what)
    if depth and made is not None and made.by in (*_ARITHMETIC, "scale"):
        for each in made.of:
            if isinstance(each.what, Tensor):
                yield from _parts(run, each, depth - 1)


def _keeps(run: Run, value: Value, loss: Value, depth: int) -> bool:
    """Whether a value is the loss, or is computed of it with its graph."""
    what = value.what
    if what == loss.what and isinstance(what, Term | Tensor):
        return not (isinstance(what, Term) and what.op == "detached")
    made = run.vm.made.get(what)
    of: tuple[Value, ...] = made.of if made is not None and made.by in _ARITHMETIC else ()
    if isinstance(what, Term) and what.op in _ARITHMETIC:
        of = tuple(Value(each) for each in what.args if isinstance(each, Term))
    return bool(depth) and any(_keeps(run, each, loss, depth - 1) for each in of)


def _is_of(backward: Event, sum_: Event) -> bool:
    """Whether the gradient is that of the sum: then its graph is wanted."""
    call = backward.node
    if backward.function != sum_.function or not isinstance(call, ast.Call):
        return False
    of = call.func.value if isinstance(call.func, ast.Attribute) else call
    return text(of, 200) == text(_target(sum_.node), 200)


def _target(node: ast.AST) -> ast.expr:
    assert isinstance(node, ast.AugAssign | ast.Assign)
    return node.target if isinstance(node, ast.AugAssign) else node.targets[0]


def _named(value: ast.expr) -> str:
    """The loss as it is written, in `loss`, `loss * n`, `loss / n`."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.Div):
        value = value.left
    return text(value)


def _fix(run: Run, event: Event, value: ast.expr) -> Fix | None:
    source = run.source(event.path)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.Div):
        value = value.left
    if source is None or not isinstance(value, ast.Name):
        return None
    return Fix((replace(source, value, f"{value.id}.detach()"),))
