"""A table of objects of the job's: by identity, without keeping them alive."""

from __future__ import annotations

import weakref
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class ByIdentity(Generic[V]):
    """What WeakKeyDictionary is, at a fraction of its cost: this is asked several times a step."""

    def __init__(self) -> None:
        self.entries: dict[int, tuple[weakref.ref[Any], V]] = {}
        """By id, for those to whom even a call costs too much."""

    def __setitem__(self, key: Any, value: V) -> None:
        number = id(key)
        self.entries[number] = (weakref.ref(key, lambda _: self.entries.pop(number, None)), value)

    def __len__(self) -> int:
        return len(self.entries)

    def get(self, key: Any) -> V | None:
        """The value that was kept for this very object."""
        entry = self.entries.get(id(key))
        return None if entry is None else entry[1]

    def values(self) -> list[V]:
        """Those of the objects that are alive, in their order."""
        return [value for _, value in self.entries.values()]

    def items(self) -> list[tuple[Any, V]]:
        """The objects that are alive, with their values."""
        entries = list(self.entries.values())
        return [(key, value) for ref, value in entries if (key := ref()) is not None]
