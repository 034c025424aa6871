"""Reads pickles that hold containers, strings and numbers, and refuses all others.

Nothing is imported and nothing is called: a pickle can run code only by naming a global, and the
few names that torch's C++ pickler writes are answered by harmless functions of ours.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, BinaryIO


class Refused(Exception):
    """This is no pickle, or one that names something that would have to be run."""


def load(file: BinaryIO) -> Any:
    """The object, made of builtin containers and scalars. Raises Refused."""
    try:
        return _Unpickler(file).load()
    except Refused:
        raise
    except MemoryError:
        raise
    except Exception as error:  # a broken pickle raises whatever comes to hand
        raise Refused(f"not a whole pickle ({type(error).__name__})") from error


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        known = _KNOWN.get((module, name))
        if known is None:
            raise Refused(f"it asks for {module}.{name}")
        return known

    def persistent_load(self, pid: Any) -> Any:
        raise Refused("it refers to objects outside of itself")


def _as_list(items: Any) -> list[Any]:
    return list(items)


def _untagged(value: Any, _type: Any) -> Any:
    return value


_KNOWN: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): dict,
    ("torch.jit._pickle", "build_intlist"): _as_list,
    ("torch.jit._pickle", "build_doublelist"): _as_list,
    ("torch.jit._pickle", "build_boollist"): _as_list,
    ("torch.jit._pickle", "restore_type_tag"): _untagged,
}
