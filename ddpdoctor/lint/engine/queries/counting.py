"""What a condition that counts is in each round of a loop: `(i + 1) % k == 0` in the fourth.

What is not known is given a number: the window of an accumulation is `WINDOW` micro-batches, all
other things that are counted are `rounds`, of which the window is no divisor.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from ddpdoctor.lint.engine.interpreter.tree import Loop, Step
from ddpdoctor.lint.engine.interpreter.values import (
    OPEN,
    WORLD,
    Const,
    Term,
    Tuple,
    Value,
    What,
)

WINDOW = 4
_ROUNDS = 11
_MOST = 300
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Is": operator.eq,
    "IsNot": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}
_DIVIDES = ("Mod", "FloorDiv")
_COUNTED = ("parameter", "field", "of", "option", "len", "item", "global", "name", "import")


class Counts:
    """Numbers for what conditions count with; `counters` are those of the round that is run."""

    def __init__(self, conditions: Iterable[Value]) -> None:
        self._windows: set[Term] = set()
        largest = 0
        for each in conditions:
            largest = max(largest, self._prepare(each.what))
        self.rounds = min(max(_ROUNDS, 2 * largest + 1), _MOST)
        self.counters: dict[Term, int] = {}

    def _prepare(self, what: What) -> int:
        """Remember what is divided by; the largest number that is."""
        if not isinstance(what, Term):
            return 0
        largest = 0
        if what.op in _DIVIDES and len(what.args) == 2:
            by = what.args[1]
            if isinstance(by, Term):
                self._windows.add(by)
            elif isinstance(by, Const) and isinstance(by.value, int):
                largest = by.value
        return max([largest, *(self._prepare(each) for each in what.args)])

    def number(self, what: Any) -> Any:
        """What a value is in this round, OPEN where that cannot be told."""
        if isinstance(what, Const):
            return what.value
        if not isinstance(what, Term):
            return what if isinstance(what, int) else OPEN
        if what in self.counters:
            return self.counters[what]
        if what in self._windows:
            return WINDOW
        if what.op == "not":
            inner = self.number(what.args[0])
            return OPEN if inner is OPEN else not inner
        if what.op in ("and", "or"):
            return self._either(what)
        function = _OPERATORS.get(what.op)
        if function is not None and len(what.args) == 2:
            left, right = (self.number(each) for each in what.args)
            if OPEN in (left, right) or None in (left, right):
                return OPEN
            try:
                return function(left, right)
            except (TypeError, ZeroDivisionError):
                return OPEN
        return self.rounds if what.op in _COUNTED or what == WORLD else OPEN

    def _either(self, what: Term) -> Any:
        found = [self.number(each) for each in what.args]
        decides = what.op == "or"
        if any(each is not OPEN and bool(each) == decides for each in found):
            return decides
        return OPEN if OPEN in found else not decides

    def truth(self, value: Value) -> bool | None:
        """Whether a condition holds in this round, None where that cannot be told.

        What a rank has found on the disk, such as its settings, is a number in all its rounds.
        """
        is_own = value.agree.divergent and value.agree.cause != "disk"
        if is_own or not self.counts(value.what):
            return None
        found = self.number(value.what)
        return None if found is OPEN else bool(found)

    def counts(self, what: Any) -> bool:
        """Whether it has to do with a loop's counter."""
        if not isinstance(what, Term):
            return False
        return what in self.counters or any(self.counts(each) for each in what.args)

    def counters_of(self, step: Step) -> dict[Term, tuple[int, int | None]]:
        """What counts the rounds of a loop: where it begins, and what each round adds to it.

        What is set anew there is known in the first round alone.
        """
        loop = step.node
        counters: dict[Term, tuple[int, int | None]] = {}
        if not isinstance(loop, Loop):
            return counters
        for counter, (begun, by) in loop.counted.items():
            first = begun.value if isinstance(begun, Const) else None
            if isinstance(begun, Term):  # it goes on from the round of the loop around
                first = self.counters.get(begun)
            if isinstance(counter, Term) and isinstance(first, int) and not isinstance(first, bool):
                counters[counter] = first, by
        if step.begun is None:
            return counters
        element = step.begun.values["element"].what
        if isinstance(element, Tuple) and element.items:
            element = element.items[0].what
        if isinstance(element, Term) and element.op == "counter":
            first, by = self._bounds(loop, element)
            if isinstance(first, int) and isinstance(by, int):
                counters[element] = first, by
        return counters

    def _bounds(self, loop: Loop, counter: Term) -> tuple[Any, Any]:
        """The first number of a counter, and what each round adds to it."""
        what = loop.count.what
        if isinstance(what, Term) and what.op == "range" and len(what.args) > 1:
            return self.number(what.args[0]), self.number(what.args[2]) if what.args[2:] else 1
        return counter.args[1] if len(counter.args) > 1 else 0, 1

    def is_known(self, loop: Loop) -> bool:
        """Whether it is known how often a loop runs."""
        return 0 < loop.rounds <= _MOST

    def rounds_of(self, loop: Loop) -> int:
        """How often a loop runs."""
        if self.is_known(loop):
            return loop.rounds
        what = loop.count.what
        if isinstance(what, Term) and what.op == "range" and what.args:
            bounds = [self.number(each) for each in what.args[:2]]
            if all(isinstance(each, int) for each in bounds):
                first, last = (0, bounds[0]) if len(bounds) == 1 else bounds
                return max(0, min(int(last) - int(first), _MOST))
        return self.rounds
