"""A loop that some ranks have left while others are in it, by where they stand alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ddpdoctor.annotate.text import Function, called, read

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


def is_left_by_a_lap(
    path: str, loop: LoopStatement, theirs: Sequence[_Line]
) -> tuple[str, ast.For] | None:
    """The file and the loop behind this one that the others may have left, to begin this one anew.

    Where both are in one loop, and this one goes through a loader, which has as many for all.
    """
    source = read(path)
    is_lap = source is not None and any(isinstance(p, LoopStatement) for p in source.around(loop))
    if source is None or not is_lap or not isinstance(loop, ast.For):
        return None
    made = (each for origin in source.origins(loop.iter) for each in ast.walk(origin))
    if not any(isinstance(each, ast.Call) and called(each) == "DataLoader" for each in made):
        return None
    for file, line in reversed(theirs):
        other = read(file)
        there = other.at(line) if other is not None else None
        if other is None or there is None:
            return None
        for each in (there, *other.around(there)):
            if isinstance(each, Function):
                break
            if any(part is loop for part in ast.walk(each)):
                return None
            if isinstance(each, ast.For) and not isinstance(each.iter, ast.Tuple | ast.List):
                return file, each
    return None


def _common(mine: Sequence[_Line], theirs: Sequence[_Line]) -> Iterator[tuple[_Line, _Line]]:
    """The lines of both, as far as those that lead there are the same."""
    for one, other in zip(mine, theirs, strict=False):
        yield one, other
        if one != other:
            return
