"""The rows of a tensor: where they come from, and whether all that followed has kept them."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.machine import Made
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event
from ddpdoctor.lint.engine.interpreter.values import Value, What
from ddpdoctor.lint.engine.libraries.torch import KEEPS_ROWS

PUTS_TOGETHER = ("cat", "concat", "stack", "tensor", "as_tensor")
"""What makes rows of the parts of a list, in their order."""
_ARITHMETIC = frozenset({"Add", "Sub", "Mult", "Div", "USub"})


def with_all_rows(run: Run, value: Value) -> Iterator[Made]:
    """How a tensor was made, step by step back, as far as each has as many rows, in their order."""
    seen: set[What] = set()
    todo = [value]
    while todo:
        each = todo.pop()
        made = run.vm.made.get(each.what)
        if made is None or each.what in seen:
            continue
        seen.add(each.what)
        yield made
        if made.by in KEEPS_ROWS or made.by in _ARITHMETIC:
            todo += made.of
        elif made.by == "forward":
            todo += made.of[1:2]


def as_it_comes(iterate: Event) -> Value:
    """What a loop goes through as to its order: what a disk says of each does not decide that."""
    element, content = iterate.values["element"], iterate.values["content"]
    return content if element.agree.cause == "disk" else element
