"""Texts that are put together of pieces."""

from __future__ import annotations

import re
import string
from typing import Any

from ddpdoctor.lint.engine.interpreter import folding
from ddpdoctor.lint.engine.interpreter.values import (
    NOTHING,
    OPEN,
    RANKS,
    SAME,
    Const,
    Many,
    Table,
    Tuple,
    Value,
    blended,
    term,
)


def composed(parts: list[Value]) -> Value:
    """A text of its pieces, one after the other, as an f-string has them."""
    agree, why = blended(parts)
    if all(isinstance(each.what, Const) for each in parts):
        return Value(Const("".join(str(each.constant) for each in parts)), agree, why)
    columns = [folding.entries(each) for each in parts]
    if any(isinstance(each.what, Table) for each in parts) and all(
        column is not None and OPEN not in column for column in columns
    ):
        rows = tuple("".join(map(str, row)) for row in zip(*filter(None, columns), strict=True))
        if len(rows) == RANKS:
            return Value(Table(rows), agree, why)
    return Value(term("text", *map(piece, parts)), agree, why)


def piece(value: Value) -> Any:
    """What a value is as a piece of a text."""
    what = value.what
    return what if what.__class__ not in (Tuple, Many) else NOTHING


def filled_by_percent(template: object, given: list[Value]) -> list[Value] | None:
    """The pieces of `"%s/%d" % given`; None where they are not told by the template."""
    if not isinstance(template, str):
        return None
    words = _PERCENT.split(template.replace("%%", "\0"))
    if len(words) != len(given) + 1 or any("%" in each for each in words):
        return None
    return _between([each.replace("\0", "%") for each in words], given)


_PERCENT = re.compile(r"%[-+ 0#]*\d*(?:\.\d+)?[a-zA-Z]")


def filled_by_format(
    template: object, args: list[Value], kwargs: dict[str, Value]
) -> list[Value] | None:
    """The pieces of `"{}/{name}".format(*args, **kwargs)`, as above."""
    if not isinstance(template, str):
        return None
    words = [""]
    given: list[Value] = []
    try:
        for word, field, _, _ in string.Formatter().parse(template):
            words[-1] += word
            if field is not None:
                number = len(given) if field == "" else int(field) if field.isdigit() else None
                given.append(args[number] if number is not None else kwargs[field])
                words.append("")
    except (ValueError, LookupError):
        return None
    return _between(words, given)


def _between(words: list[str], given: list[Value]) -> list[Value]:
    pieces = [Value(Const(words[0]), SAME)]
    for word, value in zip(words[1:], given, strict=True):
        pieces += (value, Value(Const(word), SAME))
    return [each for each in pieces if not each.is_const("")]
