"""Paths of files, by their parts."""

from __future__ import annotations

from typing import Any

from ddpdoctor.lint.engine.interpreter.machine import Machine
from ddpdoctor.lint.engine.interpreter.values import (
    NOTHING,
    Const,
    Either,
    Many,
    Term,
    Tuple,
    Value,
    blended,
    term,
)


def is_path(vm: Machine, value: Value) -> bool:
    """Whether a value is a path object."""
    return isinstance(value.what, Term) and value.what.op == "path"


def is_of_text(what: object) -> bool:
    """Whether it surely is a text, or a path: so is what is added to it, or is divided by it."""
    if isinstance(what, Const):
        return isinstance(what.value, str)
    if not isinstance(what, Term):
        return False
    return what.op in ("text", "path") or (what.op == "Add" and any(map(is_of_text, what.args)))


def joined_path(vm: Machine, parts: list[Value]) -> Value:
    """A path from its parts, the same however it is written."""
    agree, why = blended(parts)
    found: list[Any] = []
    for each in parts:
        what = each.what
        if isinstance(what, Term) and what.op == "path":
            found.extend(what.args)
        elif isinstance(what, Const) and isinstance(what.value, str):
            found.extend(Const(piece) for piece in what.value.split("/") if piece)
        elif isinstance(what, Tuple | Many | Either):
            found.append(NOTHING)
        else:
            found.append(what)
    return Value(term("path", *found), agree, why)
