"""Whether a condition asks if numbers are finite."""

from __future__ import annotations

import ast

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice
from ddpdoctor.lint.engine.interpreter.values import Term, What
from ddpdoctor.lint.engine.libraries.torch import ASKING


def asks_for_numbers(run: Run, choice: Choice) -> bool:
    """Whether a condition asks if numbers are finite, alone or among other questions."""
    what = choice.condition.what
    inner = what.args[0] if isinstance(what, Term) and what.op == "not" else what
    if isinstance(inner, Term) and inner.op in ("and", "or"):  # of which tensors are not kept
        asked = {id(each) for each in ast.walk(choice.test)}
        return any(id(x.node) in asked and _is_of_finite(x.by) for x in run.vm.made.values())
    return _asks_if_finite(run, what)


def _asks_if_finite(run: Run, what: What) -> bool:
    """Whether it asks for a number that is none, or has no bound."""
    made = run.vm.made.get(what)
    by, of = (made.by, [each.what for each in made.of]) if made is not None else ("", [])
    if isinstance(what, Term):
        is_named = what.op in ("lib", "call") and bool(what.args)
        by = str(what.args[0]) if is_named else by
        of += what.args if is_named or what.op in ASKING else ()
    name = by.rpartition(".")[2]
    is_asked = name in _COUNTED or (isinstance(what, Term) and what.op in ASKING)
    return _is_of_finite(by) or (is_asked and any(_asks_if_finite(run, each) for each in of))


def _is_of_finite(by: str) -> bool:
    return by.rpartition(".")[2] in _FINITE


_COUNTED = ("any", "all", "sum", "item", "bool", "logical_not", "Invert")
_FINITE = ("isfinite", "isnan", "isinf")
"""Of math, numpy and torch, and of their arrays."""
