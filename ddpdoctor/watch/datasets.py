"""What can be said of a dataset without asking it for a sample, which would run the user's code.

Two ranks hold the same data if what their datasets are made of is the same: strings, numbers, file
lists, and a few elements of each tensor. What cannot be looked into leaves no digest.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import re
import token
import tokenize
import zlib
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import PurePath
from types import CodeType, FrameType, FunctionType
from typing import Any

from ddpdoctor.watch.harmless import harmless

_DEPTH = 3
_LAYERS = 16
_ITEMS = 64
_VISITS = 4096
_LISTED = 50_000
"""Longer lists of files are looked at here and there only."""
_MEMBERS = 2048
_INDICES = 500_000
_SAMPLES, _SUMMED = 4096, 200_000
"""Of so many samples, and of arrays of so many elements, all are looked at."""
_FEW, _WORDS = 8, 200
_ABOUT_RANKS = frozenset(
    {"get_rank", "get_world_size", "rank", "local_rank", "world_size", "num_replicas"}
    | {"process_index", "environ", "getenv", "RANK", "LOCAL_RANK", "WORLD_SIZE"}
)
_QUOTED = frozenset(
    number
    for number, name in token.tok_name.items()
    if name in ("STRING", "COMMENT") or name.startswith("FSTRING")
)
_SLICED_BY_RANK = re.compile(
    r"\[[^\]\n]*rank[^\]\n]*:|\[[^\]\n]*:[^\]\n]*rank|(chunk|split)\([^)\n]*\)\s*\[[^\]\n]*rank",
    re.I,
)


class Fingerprint:
    """A digest of what an object is made of."""

    def __init__(self, dataset: Any) -> None:
        self.listings: dict[str, tuple[str, str]] = {}
        self.elements: dict[str, tuple[str, str]] = {}
        """Attributes with one element for each sample: digests in their order and regardless of
        it; the second "" where that would take too long."""
        self._length = _length(dataset)
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
            if elements is not None and self._is_of_samples(value):
                self.elements[name] = _told(elements), _sum_of_rows(value)
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
            if self._is_of_samples(value):
                self.elements[name] = self.listings[name]
            self._add(self.listings[name][0])
            return
        step = max(1, len(value) // _ITEMS)
        if self._is_of_samples(value):
            inside = [_plainly(each, 0) for each in value[::step]]
            if None not in inside:
                whole = _unordered(value) if len(value) <= _SAMPLES else ""
                self.elements[name] = _told("\0".join(map(str, inside))), whole
        for each in value[::step]:
            self._take(name, each, depth + 1)

    def _is_of_samples(self, value: Any) -> bool:
        return self._length > 1 and _length(value) == self._length

    def _add(self, text: str) -> None:
        self._digest.update(text.encode(errors="replace") + b"\0")


def _length(value: Any) -> int:
    """0 where it has none, and of what holds a single number."""
    try:
        return len(value)
    except TypeError:
        return 0


def _plainly(value: Any, depth: int) -> str | None:
    """One sample's element in words; None if it cannot be looked into."""
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return repr(value)[:_WORDS]
    if depth < _DEPTH and isinstance(value, (list, tuple)):
        inside = [_plainly(each, depth + 1) for each in value[:_FEW]]
        return None if None in inside else f"{len(value)}{inside}"
    if depth < _DEPTH and isinstance(value, dict):
        inside = [_plainly(each, depth + 1) for each in list(value.values())[:_FEW]]
        return None if None in inside else f"{list(value)[:_FEW]}{inside}"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return _elements(value)
    return None


def _unordered(values: Any) -> str:
    """The same for the same samples in any order."""
    told = [_plainly(each, 0) for each in values]
    if None in told:
        return ""
    return f"{sum(int(_told(str(each)), 16) for each in told) & 0xFFFF_FFFF_FFFF_FFFF:x}"


def _sum_of_rows(array: Any) -> str:
    """The same of a tensor or array whose rows stand in another order; "" for what is large."""
    size = array.numel() if hasattr(array, "numel") else array.size
    if not 0 < size <= _SUMMED:
        return ""
    rows = array.detach().numpy() if hasattr(array, "detach") else array
    return f"{sum(zlib.crc32(row.tobytes()) for row in rows):x}"


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


def layers(dataset: Any) -> list[Any]:
    """A dataset, and those below it: below a Subset, and below what changes a Subset's samples.

    A dataset that holds a Subset of itself is none of what is below it.
    """
    from torch.utils.data import Subset

    found = [dataset]
    while len(found) < _LAYERS:
        if isinstance(found[-1], Subset):
            below = [found[-1].dataset]
        else:
            parts = list(getattr(found[-1], "__dict__", {}).values())
            below = [part for part in parts if isinstance(part, Subset)]
            if len(below) != 1 or _length(below[0]) != _length(found[-1]):
                break
        if again := [number for number, each in enumerate(found) if each is below[0]]:
            return found[: again[0] + 1]
        found += below
    return found


def members(layers: list[Any]) -> list[int] | None:
    """A sample of the indices that Subsets choose from the innermost of these datasets.

    Which indices are sampled depends on the index alone, so those of two ranks can be compared.
    """
    import torch
    from torch.utils.data import Subset

    chosen: torch.Tensor | None = None
    for subset in layers:
        if isinstance(subset, Subset) and len(subset.indices) > _INDICES:
            chosen = None
        elif isinstance(subset, Subset):
            indices = torch.as_tensor(list(subset.indices), dtype=torch.int64)
            chosen = indices if chosen is None else indices[chosen]
    if chosen is None:
        return None
    every = max(1, len(layers[-1]) // _MEMBERS)
    mixed = (chosen * 2654435761 % (1 << 32)) >> 8
    return sorted(chosen[mixed % every == 0].tolist())


def deals_by_rank(layers: list[Any], collate: Any, loop: FrameType | None) -> bool:
    """Whether datasets or collate_fn speak of ranks, or the file of the loop slices by rank."""
    if isinstance(collate, FunctionType) and _ABOUT_RANKS & _words(collate.__code__):
        return True
    for cls in (cls for dataset in layers for cls in type(dataset).__mro__):
        if cls.__module__.split(".")[0] in ("torch", "builtins", "typing"):
            continue
        for name, method in vars(cls).items():
            asked = isinstance(method, FunctionType) and name != "__init__"
            if asked and any(_ABOUT_RANKS & _words(code) for code in _nested(method.__code__)):
                return True
    source = _unquoted(loop.f_code.co_filename) if loop is not None else ()
    return any(_SLICED_BY_RANK.search(line) for line in source)


@functools.lru_cache(maxsize=16)
def _unquoted(file: str) -> tuple[str, ...]:
    """The lines of a file without strings and comments, which speak of ranks often."""
    lines = linecache.getlines(file)
    cut = [*lines]
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        for each in tokenize.generate_tokens(iter(lines).__next__):
            if each.type not in _QUOTED:
                continue
            for row in range(each.start[0], each.end[0] + 1):
                line = cut[row - 1]
                start = each.start[1] if row == each.start[0] else 0
                end = each.end[1] if row == each.end[0] else len(line)
                cut[row - 1] = line[:start] + " " * (end - start) + line[end:]
    return tuple(cut)


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
    seen = [_elements(tensor) for tensor in tensors(batch)]
    if not seen or None in seen:
        return ""
    digest.update("\0".join(map(str, seen)).encode())
    return digest.hexdigest()


def samples(batch: Any, at: list[int], many: int) -> list[list[str]]:
    """Of the samples at these places of a batch of so many: a digest of each of their parts."""
    parts = [part for part in _parts(batch, 0) if _length(part) == many][:_FEW]
    return [[_told(_plainly(part[place], 0) or "") for part in parts] for place in at]


def _parts(value: Any, depth: int) -> Iterator[Any]:
    """What a collated batch holds, in containers or objects: tensors, and lists of plain things."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        yield value
    elif depth < _DEPTH and isinstance(value, dict):
        for each in value.values():
            yield from _parts(each, depth + 1)
    elif isinstance(value, (list, tuple)) and value:
        if isinstance(value[0], (str, int, float)):
            yield value
        elif depth < _DEPTH:
            for each in value[:_FEW]:
                yield from _parts(each, depth + 1)
    elif depth < _DEPTH and hasattr(value, "__dict__"):
        for each in list(vars(value).values())[:_ITEMS]:
            yield from _parts(each, depth + 1)


def rows(batch: Any) -> int | None:
    """The length of the first tensor of a batch."""
    tensor = first(batch)
    return len(tensor) if tensor is not None and tensor.shape else None


def first(batch: Any) -> Any:
    """The first tensor of a batch, or of what a model is given."""
    return next(tensors(batch), None)


def tensors(value: Any, depth: int = 0) -> Iterator[Any]:
    """Those in a batch, or in what a model is given."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        yield value
    elif depth < _DEPTH and isinstance(value, dict):
        for each in value.values():
            yield from tensors(each, depth + 1)
    elif depth < _DEPTH and isinstance(value, (list, tuple)):
        for each in value[:_ITEMS]:
            yield from tensors(each, depth + 1)
