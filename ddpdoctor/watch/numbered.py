"""Records how the program has numbered words for whose numbers a wrapped model has a row each.

Found are the dictionaries that give each of several words a number of its own, from 0 on: as a
model is wrapped those of the user's frames, of their modules, and of the objects that these hold;
and those of a dataset as it is first gone over. What is written of one are digests of its words and
of their order, which are equal where these are.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.labels import variables
from ddpdoctor.watch.places import is_users, outwards

_LEAST, _MOST = 4, 1 << 17
"""Words of one dictionary; fewer may be numbered by the ranks they stand for."""
_BESIDE = 4
"""Rows that a model may have beside those of the words: for padding, for what is unknown."""
_PLAIN: Any = object.__getattribute__
_OBJECTS, _DEPTH, _FRAMES, _FOUND = 2000, 2, 16, 16


@harmless
def rows(module: Any) -> dict[int, str]:
    """A parameter of a module by how many rows it has."""
    return {p.shape[0]: name for name, p in module.named_parameters() if p.dim()}


@harmless
def in_frames(known: dict[int, str]) -> list[dict[str, Any]]:
    """The rows of the event `numbered` of what the user's frames can see."""
    return _facts(known, _held())


@harmless
def in_dataset(known: dict[int, str], dataset: Any) -> list[dict[str, Any]]:
    """The same of what a dataset holds."""
    kind = type(dataset).__qualname__
    own = ((f"{kind}.{name}", value) for name, value in _own(dataset).items())
    return _facts(known, (each for each in own if issubclass(type(each[1]), dict)))


def _facts(known: dict[int, str], held: Iterator[tuple[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for path, each in held:
        size = dict.__len__(each)
        row = next((n for n in range(size, size + _BESIDE) if n in known), None)
        if not _LEAST <= size <= _MOST or row is None or len(found) >= _FOUND:
            continue
        value = dict.copy(each)
        if not all(type(n) is int for n in value.values()):
            continue  # lists may stand there, which no set can hold
        if all(type(word) is str for word in value) and set(value.values()) == set(range(size)):
            ordered = sorted(value, key=value.__getitem__)
            found.append(
                {
                    "name": path,
                    "rows": known[row],
                    "words": _digest(sorted(ordered)),
                    "order": _digest(ordered),
                    "first": [word[:40] for word in ordered[:_LEAST]],
                }
            )
    return found


def _digest(words: list[str]) -> str:
    return f"{len(words)} {zlib.crc32(chr(0).join(words).encode(errors='replace')):x}"


def _held() -> Iterator[tuple[str, dict[Any, Any]]]:
    """The dictionaries that the user's frames can see, each once, by the way to them."""
    seen: set[int] = set()
    frames = [each for each in outwards(sys._getframe(1)) if is_users(each.f_code)][:_FRAMES]
    todo: list[tuple[str, Any, int]] = []
    for frame in frames:
        inner = frame.f_code.co_qualname
        todo += ((f"{inner}.{name}", value, 0) for name, value in variables(frame).items())
        todo += ((name, value, 0) for name, value in frame.f_globals.items())
    for path, value, depth in todo:
        if id(value) in seen or len(seen) > _OBJECTS:
            continue
        seen.add(id(value))
        if issubclass(type(value), dict):
            yield path, value
        elif depth < _DEPTH:
            todo += ((f"{path}.{name}", each, depth + 1) for name, each in _own(value).items())


def _own(value: Any) -> dict[str, Any]:
    """What an object holds; nothing of a class, a module, or one whose code would be run for it."""
    kind = type(value)
    if issubclass(kind, (type, ModuleType)) or kind.__getattribute__ is not _PLAIN:
        return {}
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return dict(own) if type(own) is dict else {}
