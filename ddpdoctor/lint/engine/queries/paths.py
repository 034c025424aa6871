"""Whether two values mean one file, however each is written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from itertools import zip_longest
from typing import Any

from ddpdoctor.lint.engine.interpreter.objects.paths import is_of_text
from ddpdoctor.lint.engine.interpreter.values import (
    RANK,
    Const,
    Table,
    Term,
    Value,
    What,
    has_identity,
)

_ALIKE = ("same", "unknown")
Spelling = tuple[str | What, ...]
"""The words of a path as they stand there, and what is put in between."""


def same_path(one: Value | None, other: Value | None) -> bool:
    """Whether two values are one path, on all ranks as far as anything tells."""
    if one is None or other is None or not is_one_path(one, other):
        return False
    return one.agree.kind in _ALIKE and other.agree.kind in _ALIKE


def is_one_path(one: Value, other: Value) -> bool:
    """Whether a rank has one path in both, be it another than the other ranks have."""
    is_one = one.what == other.what or spelled(one.what) == spelled(other.what)
    return is_one and has_identity(one.what)


def spelled(what: What) -> Spelling:
    """A path in one way of writing: `join(folder, "a.pt")` is `f"{folder}/a.pt"`."""
    words = [re.sub("/+", "/", x) if isinstance(x, str) else x for x in _merged(_pieces(what))]
    if words and isinstance(words[0], str):
        words[0] = words[0].removeprefix("./")
    return tuple(words)


def _merged(pieces: Iterable[str | What]) -> Spelling:
    """The same, with what is written side by side as one word."""
    found: list[str | What] = []
    for each in pieces:
        if isinstance(each, str) and found and isinstance(found[-1], str):
            found[-1] += each
        else:
            found.append(each)
    return tuple(found)


def may_be(read: What, written: What) -> bool:
    """Whether a path is one of those that are written: `epoch-2.pt` of `f"epoch-{epoch}.pt"`."""
    if read == written:
        return True
    folder, pattern = folder_and_name(spelled(written))
    if read_in(read, folder):
        return True
    within, name = folder_and_name(spelled(read))
    return within == folder and _fits(name, pattern)


def goes_through(read: What, written: What) -> bool:
    """Whether `part-{i}.pt` of a counter means `part-{rank}.pt`, one rank's after the other's.

    So does what their folder is seen to hold, or what a pattern shows that they fit.
    """
    path = _by_rank(spelled(written))
    is_held = read_in(read, folder_and_name(path)[0]) or is_listed(read, written)
    if RANK in path and is_held:
        return True
    pairs = zip_longest(spelled(read), path)
    others = [(one, mine) for one, mine in pairs if one != mine]
    return len(others) == 1 and all(
        mine == RANK and isinstance(one, Term) and one.op == "counter" for one, mine in others
    )


def _by_rank(path: Spelling) -> Spelling:
    """The same with names that have the rank's number in them as text and number."""
    found: list[str | What] = []
    for each in path:
        found += _numbered(each.entries) if isinstance(each, Table) else (each,)
    return _merged(found)


def _numbered(names: tuple[Any, ...]) -> Spelling:
    """`part-{rank}.pt` of the names of all ranks; the names themselves where that is not it."""
    first = names[0] if isinstance(names[0], str) else ""
    for digit in re.finditer("0", first):
        before, after = first[: digit.start()], first[digit.end() :]
        if names == tuple(f"{before}{rank}{after}" for rank in range(len(names))):
            return (before, RANK, after)
    return (Table(names),)


def read_in(path: What, folder: Spelling) -> bool:
    """Whether a path is whatever a folder was seen to hold."""
    if isinstance(path, Term) and path.op == "path":
        before = path.args[:-1]
        if before and spelled(Term("path", before)) != folder:
            return False
        path = path.args[-1]
    return isinstance(path, Term) and path.op == "listed" and spelled(path.args[0]) == folder


def is_listed(read: What, written: What) -> bool:
    """Whether a path is one of those that a listing has shown in which this one would be."""
    folder, name = folder_and_name(spelled(written))
    if read_in(read, folder):
        return True
    seen = read.args[-1] if isinstance(read, Term) and read.op == "path" else read
    if not isinstance(seen, Term) or seen.op != "listed":
        return False
    within, pattern = folder_and_name(spelled(seen.args[0]))
    words = ["*" if word is None else word for word in _words(name)]
    return within == folder and fnmatch("".join(words), "".join(map(str, pattern)))


def _pieces(what: object) -> Iterator[str | What]:
    if isinstance(what, Const):
        yield str(what.value)
    elif isinstance(what, Term) and (what.op == "text" or (what.op == "Add" and is_of_text(what))):
        for each in what.args:
            yield from _pieces(each)
    elif isinstance(what, Term) and what.op == "path":
        for number, each in enumerate(what.args):
            yield from ("/",) if number else ()
            yield from _pieces(each)
    else:
        yield what  # type: ignore[misc]


def folder_and_name(path: Spelling) -> tuple[Spelling, Spelling]:
    """The folder and the name."""
    for number in range(len(path) - 1, -1, -1):
        word = path[number]
        if isinstance(word, str) and "/" in word:
            before, _, after = word.rpartition("/")
            folder = (*path[:number], *((before,) if before else ()))
            return folder, (*((after,) if after else ()), *path[number + 1 :])
    return (), path


def _fits(name: Spelling, pattern: Spelling) -> bool:
    """Whether a name is what a text with a counter in it may be, or another one of such a text."""
    if all(isinstance(each, str) for each in pattern):
        return name == pattern
    if not any(_words(pattern)):
        return False  # nothing of either is known
    if any(not isinstance(each, str) for each in name):
        return _words(name) == _words(pattern)
    parts = [".*" if word is None else re.escape(word) for word in _words(pattern)]
    return re.fullmatch("".join(parts), "".join(map(str, name))) is not None


def _words(path: Spelling) -> list[str | None]:
    return [each if isinstance(each, str) else None for each in path]
