"""A loop that some ranks have left while others are in it, by where they stand alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ddpdoctor.annotate.text import read

LoopStatement = ast.For | ast.AsyncFor | ast.While
_Line = tuple[str, int]


def left_by_others(
    mine: Sequence[_Line], theirs: Sequence[_Line]
) -> tuple[str, LoopStatement] | None:
    """The file and the loop, in which one stack stands and behind which the other does.

    What calls that function has to be the same line for both: else these are two calls of it.
    """
    for (file, line), (other_file, other_line) in _common(mine, theirs):
        source = read(file)
        here = source.at(line) if source is not None else None
        there = source.at(other_line) if source is not None else None
        if file != other_file or source is None or here is None or there is None:
            return None
        if source.function(here) is not source.function(there):
            return None
        around = [here, *source.around(here)]
        for loop in (each for each in around if isinstance(each, LoopStatement)):
            behind = source.block(loop)[1:]
            if any(each is there or each in source.around(there) for each in behind):
                return file, loop
    return None


def _common(mine: Sequence[_Line], theirs: Sequence[_Line]) -> Iterator[tuple[_Line, _Line]]:
    """The lines of both, as far as those that lead there are the same."""
    for one, other in zip(mine, theirs, strict=False):
        yield one, other
        if one != other:
            return
