"""What becomes of what ranks have summed: whether a division makes their average of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from ddpdoctor.lint.engine.interpreter.folding import of_world
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import (
    RANKS,
    WORLD,
    Const,
    Term,
    Value,
    What,
    within,
)
from ddpdoctor.lint.engine.libraries.torch import VIEWS
from ddpdoctor.lint.reason.heads import Heads, line_of
from ddpdoctor.lint.reason.trails import aligned, is_unbroken
from ddpdoctor.lint.reason.turns import Line

_STEPS = 6
"""So many operations away, what was computed of a thing is still known to be."""
_DIVISIONS = ("Div", "div", "div_", "true_divide")
_AS_IT_IS = VIEWS | {"clone", "contiguous", "cpu", "cuda", "double", "float", "to"}
"""Operations that change no number."""
_SCALING = frozenset(
    {"Div", "FloorDiv", "Mult", "MatMult", "div", "div_", "true_divide", "true_divide_", "divide"}
) | {"divide_", "mul", "mul_", "multiply", "multiply_", "mean", "nanmean"}
"""Operations that may make an average of a sum."""
_PRODUCTS = frozenset({"Mult", "mul", "mul_", "multiply", "multiply_"})
_QUOTIENTS = frozenset({"Div", "div", "div_", "true_divide", "true_divide_", "divide", "divide_"})


def is_divided(heads: Heads, line: Line) -> bool:
    """Whether what is reduced on a line is divided by the number of ranks, wherever that is."""
    at = heads.first_line(line)
    for runs in heads.candidates((at,)):
        if shared := list(_reduced(heads, runs, at)):
            return any(
                _is_share(event.name, event.values["by"])
                and any(_comes_of(run, event.values["owner"].what, each) for each in shared)
                for run in runs
                for event, _ in events(run.root, "asked")
            )
    return False


def is_a_part(heads: Heads, line: Line) -> bool:
    """Whether what is reduced on a line was divided by the number of ranks before."""
    at = heads.first_line(line)
    for runs in heads.candidates((at,)):
        shared = [(run, what) for run in runs for what in _reduced(heads, [run], at)]
        if shared:
            return all(_shared_out(run, what) is not None for run, what in shared)
    return False


def goes_back_in_parts(heads: Heads, line: Line) -> list[Line]:
    """The lines at which the loss that goes backward on one was divided by the number of ranks."""
    at = heads.first_line(line)
    for runs in heads.candidates((at,)):
        found = [
            (run, event.values["loss"].what)
            for run in runs
            for event, _ in events(run.root, "backward")
            if "loss" in event.values and heads.first_line(line_of(event)) == at
        ]
        if found:
            lines = [_shared_out(run, what) for run, what in found]
            known = [each for each in lines if each is not None]
            return known if len(known) == len(lines) else []
    return []


def is_left(heads: Heads, stack: tuple[Line, ...]) -> bool:
    """Whether what is reduced at the end of a way is multiplied by nothing after that.

    Unless by how many samples or batches there are: a mean over these is one of sums, still; or
    by a number that is written there and cannot be one of ranks, as for another unit.
    The whole program must have been followed, and along this way: who calls may divide.
    """
    way = tuple(map(heads.first_line, stack))
    for run in heads.run(way[0][0]):
        shared = [
            summed.what
            for event, steps in events(run.root, "collective")
            if (summed := _summed(event)) is not None
            and is_unbroken(aligned([*heads.calls(steps), heads.first_line(line_of(event))], way))
        ]
        if shared and not run.spent:
            return not any(
                event.name in _SCALING
                and not _is_count(event.values[by].what)
                and not _is_unit(event.name, event.values[by].what)
                and any(_comes_of(run, event.values[side].what, each) for each in shared)
                for event, _ in events(run.root, "asked")
                for side, by in (("owner", "by"), ("by", "owner"))
            )
    return False


def _reduced(heads: Heads, runs: Iterable[Run], at: Line) -> Iterator[What]:
    """What the collectives of a statement reduce."""
    for run in runs:
        for event, _ in events(run.root, "collective"):
            summed = _summed(event)
            if summed is not None and heads.first_line(line_of(event)) == at:
                yield summed.what


def _summed(event: Event) -> Value | None:
    """What a collective may add up: on all ranks, on one, or into what it returns."""
    roles = (event.values.get(role) for role in ("shares", "collects", "sum"))
    return next((each for each in roles if each is not None), None)


def _is_share(operation: str, by: Value) -> bool:
    """Whether an operation leaves each rank its part: a division by their number, or the like."""
    return _leaves_parts(operation, by.what)


def _leaves_parts(operation: str, by: What) -> bool:
    value = of_world(by)
    if operation in _DIVISIONS:
        return value == RANKS and isinstance(by, Term)
    return operation in ("Mult", "mul", "mul_") and value == 1 / RANKS


def _is_of_all(run: Run, by: What) -> bool:
    """Whether it is the number of ranks times another number, as that of all their terms."""
    made = run.vm.made.get(by)
    return made is not None and made.by == "Mult" and any(_is_share("Div", of) for of in made.of)


def _is_count(what: object) -> bool:
    """Whether it is how many samples something holds, or adds up such numbers, or ones."""
    if what == Const(1) or not isinstance(what, Term):
        return what == Const(1)
    if what.op == "Add":
        counts = [each for each in what.args if not _is_sum_so_far(each)]
        return bool(counts) and all(map(_is_count, counts))
    if what.op == "result" and isinstance(what.args[0], Term):
        return what.args[0].op == "of" and what.args[0].args[-1] in ("size", "numel")
    return what.op == "len" and WORLD not in within(what)  # else it is how many ranks there are


def _is_unit(operation: str, what: object) -> bool:
    """Whether it is a known number, by which that operation makes no part: 100, or the log of 2."""
    number = _number(what)
    if not number or operation not in _PRODUCTS | _QUOTIENTS:
        return False
    parts = 1 / number if operation in _PRODUCTS else number
    return parts < 1 or not math.isclose(parts, round(parts), rel_tol=1e-9)


def _number(what: object) -> float | None:
    """What is written, or what a function of Python's `math` makes of that."""
    if isinstance(what, Const):
        return float(what.value) if type(what.value) in (int, float) else None
    if not isinstance(what, Term) or what.op != "lib" or len(what.args) < 2:
        return None
    module, _, name = str(what.args[0]).rpartition(".")
    given = [_number(each) for each in what.args[1:-1]]
    if module != "math" or None in given:
        return None
    try:
        return float(getattr(math, name)(*given))
    except (AttributeError, TypeError, ValueError, ArithmeticError):
        return None


def _is_sum_so_far(what: object) -> bool:
    return isinstance(what, Term) and what.op == "joined"


def _sizes(run: Run) -> set[What]:
    """What the program says is the number of ranks, as it joins: an option, an argument."""
    joined = (event.values.get("size") for event, _ in events(run.root, "init"))
    return {size.what for size in joined if size is not None and isinstance(size.what, Term)}


def _shared_out(run: Run, what: object, depth: int = _STEPS) -> Line | None:
    """The line that left each rank its part, if it was made so, or of such and no other number.

    What is no tensor has none: its line is 0.
    """
    if not depth or not isinstance(what, What):
        return None
    made = run.vm.made.get(what)
    if made is None and isinstance(what, Term):
        operation, of = what.op, what.args
    elif made is not None:
        operation, of = made.by, tuple(each.what for each in made.of)
    else:
        return None
    if operation == "scale" and len(of) > 1:  # by a scaler, which divides by it before the step
        return _shared_out(run, of[-1], depth - 1)
    if len(of) > 1 and isinstance(of[1], What):
        is_of_all = operation in _DIVISIONS and (of[1] in _sizes(run) or _is_of_all(run, of[1]))
        if is_of_all or _leaves_parts(operation, of[1]):
            return (made.path, getattr(made.node, "lineno", 0)) if made is not None else ("", 0)
    return _shared_out(run, of[0], depth - 1) if of and operation in _AS_IT_IS else None


def _comes_of(run: Run, what: What, source: What, depth: int = _STEPS) -> bool:
    """Whether something is a thing, or was computed of it."""
    if what == source:
        return True
    if not depth:
        return False
    made = run.vm.made.get(what)
    of = [each.what for each in made.of] if made is not None else []
    of += [each for each in what.args if isinstance(each, Term)] if isinstance(what, Term) else []
    return any(_comes_of(run, each, source, depth - 1) for each in of)
