"""What can be said of a dataset without asking it for a sample, which would run the user's code.

Two ranks hold the same data if what their datasets are made of is the same: strings, numbers, file
lists, and a few elements of each tensor. What cannot be looked into leaves no digest.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import PurePath
from types import CodeType, FrameType, FunctionType
from typing import Any

from ddpdoctor.watch.harmless import harmless

_DEPTH = 3
_ITEMS = 64
_VISITS = 4096
_LISTED = 50_000
"""Longer lists of files are looked at here and there only."""
_MEMBERS = 2048
_INDICES = 500_000
_ABOUT_RANKS = frozenset(
    {"get_rank", "get_world_size", "rank", "local_rank", "world_size", "num_replicas"}
    | {"process_index", "environ", "getenv", "RANK", "LOCAL_RANK", "WORLD_SIZE"}
)
_SLICED_BY_RANK = re.compile(
    r"\[[^\]\n]*rank[^\]\n]*:|\[[^\]\n]*:[^\]\n]*rank|(chunk|split)\([^)\n]*\)\s*\[[^\]\n]*rank",
    re.I,
)


class Fingerprint:
    """A digest of what an object is made of."""

    def __init__(self, dataset: Any) -> None:
        self.listings: dict[str, tuple[str, str]] = {}
        self._digest = blake2b(digest_size=8)
        self._complete = True
        self._visits = 0
        try:
            self._take("", dataset, 0)
        except Exception:  # a user's class may raise from any attribute
            self._complete = False

    @property
    def identity(self) -> str:
        """The digest; empty if a part of the object could not be looked into."""
        return self._digest.hexdigest() if self._complete else ""

    def _take(self, name: str, value: Any, depth: int) -> None:
        self._visits += 1
        if self._visits > _VISITS:
            self._complete = False
        elif value is None or isinstance(value, (bool, int, float, str, bytes, range)):
            self._add(f"{name}={value!r}")
        elif type(value).__module__.split(".")[0] in ("torch", "numpy") and hasattr(value, "dtype"):
            elements = _elements(value)
            self._complete &= elements is not None
            self._add(f"{name}={elements}")
        elif isinstance(value, (list, tuple)):
            self._sequence(name, value, depth)
        elif isinstance(value, dict):
            self._add(f"{name}:{len(value)}")
            for key in list(value)[:_ITEMS]:
                self._take(f"{name}.{key}", value[key], depth + 1)
        elif hasattr(value, "__dict__") and depth < _DEPTH and not _is_tool(value):
            self._add(f"{name}:{type(value).__qualname__}")
            for key, part in vars(value).items():
                self._take(f"{name}.{key}".lstrip("."), part, depth + 1)
        elif not _is_tool(value):
            self._complete = False

    def _sequence(self, name: str, value: Any, depth: int) -> None:
        self._add(f"{name}:{len(value)}")
        if len(value) and len(value) <= _LISTED and all(_is_path(each) for each in value):
            paths = [
                "\t".join(map(str, each)) if isinstance(each, tuple) else str(each)
                for each in value
            ]
            folder = _folder(paths)
            paths = [path[folder:] for path in paths]
            self.listings[name] = (_told("\n".join(paths)), _told("\n".join(sorted(paths))))
            self._add(self.listings[name][0])
            return
        step = max(1, len(value) // _ITEMS)
        for each in value[::step]:
            self._take(name, each, depth + 1)

    def _add(self, text: str) -> None:
        self._digest.update(text.encode(errors="replace") + b"\0")


def _folder(paths: list[str]) -> int:
    """Length of the folder that all have in common: each node may keep its copy elsewhere."""
    first, last = min(paths), max(paths)
    common = 0
    while common < min(len(first), len(last)) and first[common] == last[common]:
        common += 1
    return first[:common].rfind("/") + 1


def _is_path(value: Any) -> bool:
    """A string or a path, or a pair such as (path, label)."""
    head = value[0] if isinstance(value, tuple) and value else value
    return isinstance(head, (str, PurePath))


def _is_tool(value: Any) -> bool:
    """Transforms and generators: they shape samples, and say nothing about which there are."""
    return callable(value) or type(value).__name__ in ("Generator", "RandomState", "Random")


@harmless
def _elements(array: Any) -> str | None:
    """Shape, type and some elements of a tensor or array; None where they lie on a device."""
    if getattr(getattr(array, "device", None), "type", "cpu") != "cpu":
        return None
    # A view, for to flatten what is not contiguous would copy all of it.
    flat = array.detach().view(-1) if hasattr(array, "detach") else array.reshape(-1)
    step = max(1, len(flat) // _ITEMS)
    return f"{tuple(array.shape)} {array.dtype} {flat[::step][:_ITEMS].tolist()}"


def _told(text: str) -> str:
    return blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()


def members(subset: Any) -> tuple[Any, list[int] | None]:
    """The dataset below all Subsets, and a sample of the indices that they choose from it.

    Which indices are sampled depends on the index alone, so those of two ranks can be compared.
    """
    import torch
    from torch.utils.data import Subset

    chosen: torch.Tensor | None = None
    while isinstance(subset, Subset):
        if len(subset.indices) > _INDICES:
            chosen, subset = None, subset.dataset
            continue
        indices = torch.as_tensor(list(subset.indices), dtype=torch.int64)
        chosen = indices if chosen is None else indices[chosen]
        subset = subset.dataset
    if chosen is None:
        return subset, None
    every = max(1, len(subset) // _MEMBERS)
    mixed = (chosen * 2654435761 % (1 << 32)) >> 8
    return subset, sorted(chosen[mixed % every == 0].tolist())


def deals_by_rank(dataset: Any, collate: Any, loop: FrameType | None) -> bool:
    """Whether dataset or collate_fn speak of ranks, or the file of the loop slices by rank."""
    if isinstance(collate, FunctionType) and _ABOUT_RANKS & _words(collate.__code__):
        return True
    for cls in type(dataset).__mro__:
        if cls.__module__.split(".")[0] in ("torch", "builtins", "typing"):
            continue
        for name, method in vars(cls).items():
            asked = isinstance(method, FunctionType) and name != "__init__"
            if asked and any(_ABOUT_RANKS & _words(code) for code in _nested(method.__code__)):
                return True
    source = linecache.getlines(loop.f_code.co_filename) if loop is not None else []
    return any(_SLICED_BY_RANK.search(line) for line in source)


def _words(code: CodeType) -> set[str]:
    return {*code.co_names, *(each for each in code.co_consts if isinstance(each, str))}


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def content(batch: Any) -> str:
    """A digest of some elements of the tensors of a batch; "" if they cannot be read."""
    digest = blake2b(digest_size=8)
    seen = [_elements(tensor) for tensor in _tensors(batch, 0)]
    if not seen or None in seen:
        return ""
    digest.update("\0".join(map(str, seen)).encode())
    return digest.hexdigest()


def rows(batch: Any) -> int | None:
    """The length of the first tensor of a batch."""
    first = next(_tensors(batch, 0), None)
    return len(first) if first is not None and first.shape else None


def _tensors(value: Any, depth: int) -> Iterator[Any]:
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        yield value
    elif depth < _DEPTH and isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each, depth + 1)
    elif depth < _DEPTH and isinstance(value, (list, tuple)):
        for each in value[:_ITEMS]:
            yield from _tensors(each, depth + 1)
