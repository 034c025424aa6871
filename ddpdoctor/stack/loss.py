"""The mean over all samples of all ranks, exactly, from DDP's mean over ranks.

DDP averages gradients over ranks, each with equal weight. A mean loss per rank is therefore wrong
as soon as ranks (or the micro-batches of an accumulation window) hold different numbers of
samples. Cure: every rank back-propagates `sum * world_size / N`, with N counted over all ranks and
all micro-batches of the window. The averaged gradient is then that of the mean over the N samples.

N counts what the loss adds up: samples, or masked residues, or boxes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist

from ddpdoctor.stack.process_group import World


class Totals:
    """Sums over all ranks, which travel while this rank calculates. Made by every rank at once."""

    def __init__(self, mine: Sequence[float], world: World) -> None:
        self._sums = torch.tensor(mine, dtype=torch.float64, device=world.device)
        several = world.world_size > 1
        self._adding = dist.all_reduce(self._sums, async_op=True) if several else None

    def arrived(self) -> torch.Tensor:
        """Wait for the sums (on a GPU, what is queued next waits) and return them (float64)."""
        if self._adding is not None:
            self._adding.wait()
        return self._sums


def global_count(local_count: int, world: World) -> int:
    """Add up the samples of this window over all ranks. A collective: every rank must call it."""
    return int(Totals([local_count], world).arrived().item())


def global_mean(local_sum: torch.Tensor, count: int | torch.Tensor, world: World) -> torch.Tensor:
    """Scale a rank's summed loss (a scalar) so that DDP's gradient is that of the global mean.

    `count` is the `global_count` of the whole accumulation window, not of one micro-batch. A rank
    without samples passes a zero that depends on the parameters, so that its DDP takes part.
    """
    return local_sum / (count / world.world_size)
