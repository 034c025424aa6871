"""How partings are told to people, and where."""

from __future__ import annotations

import ast

from ddpdoctor.lint.engine.interpreter.machine import BY_SOME
from ddpdoctor.lint.engine.interpreter.objects import containers
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.store import SET_BY_SOME
from ddpdoctor.lint.engine.interpreter.tree import events
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    Const,
    Either,
    Many,
    Term,
    Tuple,
    Value,
    Why,
    text,
)
from ddpdoctor.lint.engine.queries.partings import Met, Parting
from ddpdoctor.lint.rule import Related

_EXITS = {"end": "exit", "raise": "raise"}
_LONGEST = 4
_OWN_DECISIONS = ("clock", "disk", "chance", "signal", "machine")


def operation(met: Met) -> str:
    """What is met, as a call."""
    return f"{met.event.name}()"


def who(parting: Parting) -> str:
    """Which ranks do what the others do not."""
    if parting.mask == 1:
        return "the main rank alone"
    if parting.mask == EVERYONE & ~1:
        return "every rank but the main one"
    return "some ranks only"


def how(parting: Parting, what: str = "it") -> Related:
    """Where it stands: "it stands under `if rank == 0:`", with the place of the condition."""
    return Related.at(parting.place, f"{what} {_stands(parting)}")


def decides(parting: Parting) -> Related:
    """The condition, where it is not itself what is told."""
    return Related.at(parting.place, "here each rank decides")


def _stands(parting: Parting) -> str:
    condition = text(parting.test)
    if parting.left:
        word = _EXITS.get(parting.left, parting.left)
        return f"stands after `{condition}`, by which some {word}"
    match parting.node:
        case ast.While(test=test):
            return f"stands in `while {text(test)}:`"
        case ast.If():
            return f"stands under `if {condition}:`"
        case ast.Assert():
            return f"stands after `assert {condition}`"
    return f"runs only by `{condition}`"


def where(parting: Parting, met: Met) -> tuple[ast.AST, str]:
    """Where what is met stands: what is particular of a decorated function is inside of it."""
    at: list[tuple[ast.AST, str]] = [(each.node, each.path) for each in met.chain]
    at.append((met.event.node, met.event.path))
    inside = 0
    while inside < len(met.chain) and (
        met.chain[inside].node is parting.node is parting.test or met.chain[inside].handed_in
    ):
        inside += 1
    return at[inside] if at[0] == (met.node, met.path) else (met.node, met.path)


def chain(met: Met) -> tuple[Related, ...]:
    """The calls that lead to it: "sync() calls barrier()", with the place of each."""
    inner = [(each.place, f"{each.name}()") for each in met.chain[1:]]
    inner.append((met.event.place, operation(met)))
    return tuple(
        Related.at(place, f"{each.name}() calls {name}")
        for each, (place, name) in zip(met.chain, inner, strict=False)
    )


def steps(why: Why | None) -> tuple[Related, ...]:
    """The places of a chain of reasons, nearest first; of what some set, where they did last."""
    chain = list(why.chain()) if why is not None else []
    set_ = [each for each in chain if each.text == SET_BY_SOME]
    chain = [each for each in chain if each not in set_[1:]][:_LONGEST]
    return tuple(Related.at(each.place, each.text) for each in chain)


def decision(run: Run, parting: Parting) -> tuple[ast.AST, str]:
    """Where a person would mend a decision: the test, or what decides for it elsewhere."""
    if parting.condition.agree.cause in _OWN_DECISIONS and parting.why is not None:
        for each in parting.why.chain():
            found = _returned_there(run, each)
            if found is not None:
                return found
    filled = filled_by_some(parting)
    if filled is not None and filled.node is not None:
        return filled.node, filled.place.path
    return header(parting) if parting.repeats else parting.test, parting.path


def filled_by_some(parting: Parting) -> Why | None:
    """Of a loop: the condition of some ranks under which what it goes through was put there."""
    is_loop = parting.repeats or isinstance(parting.node, ast.For | ast.AsyncFor)
    what = parting.condition.what
    if isinstance(what, Term) and what.op == "range":  # a number of rounds
        return None
    chain = parting.why.chain() if is_loop and parting.why is not None else ()
    return next((each for each in chain if each.text == BY_SOME), None)


def as_met(run: Run, parting: Parting) -> bool:
    """Of a loop by names of a table: whether it goes by the order in which this rank met them."""
    over = _gone_through(run, parting)
    is_view = over is not None and (isinstance(over.what, Many) or run.vm.type_of(over) == "dict")
    return is_view and _is_a_table(run, over)


def of_a_table(run: Run, parting: Parting) -> bool:
    """Of a loop: whether it goes by names of which the program has a few, all of them written."""
    return _is_a_table(run, _gone_through(run, parting))


def _is_a_table(run: Run, over: Value | None) -> bool:
    content = over and containers.content(run.vm, over)
    one = content.what.element.what if content and isinstance(content.what, Many) else None
    name = one.items[0].what if isinstance(one, Tuple) and one.items else one
    return isinstance(name, Either) and all(isinstance(each.what, Const) for each in name.options)


def _gone_through(run: Run, parting: Parting) -> Value | None:
    found = (each for each, _ in events(run.root, "iterate") if each.node is parting.node)
    begun = next(found, None) if parting.repeats else None
    return begun.values["over"] if begun is not None else None


def _returned_there(run: Run, why: Why) -> tuple[ast.AST, str] | None:
    """The `return` of a function that itself asks the clock, or the disk, and decides."""
    if not why.text.endswith("returns it"):
        return None
    source = run.source(why.place.path)
    if source is None:
        return None
    for function in source.nodes:
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        last = function.end_lineno or function.lineno
        root = why.root.place
        inside = root.path == why.place.path and function.lineno <= root.line <= last
        if not inside or not function.lineno <= why.place.line <= last:
            continue
        for node in ast.walk(function):
            at_line = isinstance(node, ast.Return) and node.lineno == why.place.line
            if at_line and _decides(node.value):  # type: ignore[attr-defined]
                return node, why.place.path
    return None


def _decides(node: ast.expr | None) -> bool:
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Call(func=ast.Name(id="bool" | "any" | "all")):
            return True
    return False


def leaving(parting: Parting) -> tuple[ast.AST, str]:
    """Where ranks leave: the statement, the handler, or the test."""
    if parting.exit is not None and parting.left in ("continue", "return"):
        return parting.exit.node, parting.exit.path
    if isinstance(parting.node, ast.Try) and parting.node.handlers:
        return parting.node.handlers[0], parting.path
    return parting.test, parting.path


def header(parting: Parting) -> ast.AST:
    """What a loop goes through."""
    node = parting.node
    if isinstance(node, ast.For | ast.AsyncFor):
        return node.iter
    return getattr(node, "test", node)
