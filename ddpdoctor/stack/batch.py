"""What `collate` makes of samples, and how it travels to the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Protocol, Self

import torch


class Batch(Protocol):
    """What the trainer asks of a batch. It may hold no samples at all."""

    @property
    def weight(self) -> int:
        """What its loss is to be divided by: the number of things that the loss adds up.

        Asked for on the CPU, before `to`, so that nobody waits for a GPU.
        """

    def to(self, device: torch.device) -> Self:
        """Return a copy on `device`."""


class TensorBatch:
    """Base of batches that are dataclasses of tensors; one sample has a weight of 1.

    Override `weight` where the loss adds up something else than samples. `pin_memory` is what
    DataLoader calls where a copy to a GPU is to overlap with its work.
    """

    def __len__(self) -> int:
        """Return the number of samples."""
        raise NotImplementedError

    @property
    def weight(self) -> int:
        """What the batch's loss is to be divided by."""
        return len(self)

    def to(self, device: torch.device) -> Self:
        """Return a copy on `device`, without waiting for it where the memory is pinned."""
        return self._mapped(lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self) -> Self:
        """Return a copy in memory that a GPU can read by itself."""
        return self._mapped(torch.Tensor.pin_memory)

    def _mapped(self, function: Callable[[torch.Tensor], torch.Tensor]) -> Self:
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]  # see above
        return type(self)(**{name: function(getattr(self, name)) for name in names})
