"""Short sums of tensors, equal where the tensors are equal to the bit.

A digest is the sum of the bit patterns as 64-bit integers, computed where the tensor lives, without
random numbers. Of each tensor the first rows count, about ELEMENTS of them: where gradients are
not shared, all rows differ, and the cost does not grow with the model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from typing import Any

ELEMENTS = 16_384
"""About so many elements of each tensor are read."""

FEW, _NAMES = 4, 256
"""So many elements, of so many tensors, are written as they are."""

RATE, BURST = 64 << 20, 256 << 20
"""Bytes that may be read in a second of the job, and at its start: 1 % of one core at 6 GB/s."""


class Budget:
    """How many bytes may be read by now."""

    def __init__(self) -> None:
        self._left = float(BURST)
        self._since = time.monotonic()

    def take(self, size: int) -> bool:
        """Whether `size` bytes may be read; if so, they are taken off."""
        now = time.monotonic()
        self._left = min(BURST, self._left + RATE * (now - self._since))
        self._since = now
        if size > self._left:
            return False
        self._left -= size
        return True


def is_capturing(tensors: Iterable[Any]) -> bool:
    """Whether a CUDA graph is being captured: reading a value would end that with an error."""
    import torch

    on_gpu = any(tensor.is_cuda for tensor in tensors)
    return on_gpu and torch.cuda.is_current_stream_capturing()


def size(tensors: Mapping[str, Any]) -> int:
    """Bytes that their digests would read."""
    return sum(min(t.numel(), ELEMENTS) * t.element_size() for t in tensors.values())


def digests(tensors: Mapping[str, Any]) -> dict[str, str]:
    """A digest for each tensor that is whole here: no shard, no fake, no sparse one."""
    import torch

    by_device: dict[Any, dict[str, Any]] = {}
    with torch.no_grad():
        for name, tensor in tensors.items():
            if (bits := _bits(tensor)) is not None:
                total = bits.sum(dtype=torch.int64)
                by_device.setdefault(tensor.device, {})[name] = total
        found: dict[str, str] = {}
        for sums in by_device.values():
            values = torch.stack(list(sums.values())).tolist()
            found.update(
                (name, f"{value & 0xFFFF_FFFF_FFFF_FFFF:x}")
                for name, value in zip(sums, values, strict=True)
            )
    return found


def head(tensor: Any) -> Any:
    """The first rows, which a digest reads."""
    rows = tensor.reshape(1) if tensor.dim() == 0 else tensor
    return rows[: max(1, ELEMENTS * len(rows) // rows.numel())]


def few(tensors: Mapping[str, Any]) -> dict[str, list[float]]:
    """Some elements of each tensor of 32-bit numbers on the CPU: how far apart is asked of them."""
    import torch

    taken: dict[str, Any] = {}
    with torch.no_grad():
        for name, tensor in list(tensors.items())[:_NAMES]:
            plain = tensor.detach()
            is_plain = type(plain) is torch.Tensor and plain.dtype is torch.float32
            if is_plain and plain.numel() and plain.device.type == "cpu" and plain.is_contiguous():
                taken[name] = plain.view(-1)[:: max(1, plain.numel() // FEW)][:FEW]
    values = torch.cat(list(taken.values())).tolist() if taken else []
    found, at = {}, 0
    for name, part in taken.items():
        found[name], at = values[at : at + len(part)], at + len(part)
    return {name: row for name, row in found.items() if all(map(math.isfinite, row))}


def _bits(tensor: Any) -> Any:
    """The first rows as integers of the same width; None where this is not a plain tensor."""
    import torch

    plain = tensor.detach()
    widths = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    if type(plain) is not torch.Tensor or plain.layout is not torch.strided or plain.is_meta:
        return None
    if plain.numel() == 0 or plain.element_size() not in widths:
        return None
    return head(plain).view(widths[plain.element_size()])
