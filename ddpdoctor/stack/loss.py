"""The mean over all samples of all ranks, exactly, from DDP's mean over ranks.

DDP averages gradients over ranks, each with equal weight. A mean loss per rank is therefore wrong
as soon as ranks (or the micro-batches of an accumulation window) hold different numbers of
samples. Cure: every rank back-propagates `sum * world_size / N`, with N counted over all ranks and
all micro-batches of the window. The averaged gradient is then that of the mean over the N samples.

N counts what the loss adds up: samples, or masked residues, or boxes.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

from ddpdoctor.stack.process_group import World


def global_count(local_count: int, world: World) -> int:
    """Add up the samples of this window over all ranks. A collective: every rank must call it."""
    if world.world_size == 1:
        return local_count
    count = torch.tensor(local_count, device=world.device, dtype=torch.int64)
    dist.all_reduce(count)
    return int(count.item())


def global_mean(local_sum: torch.Tensor, count: int | torch.Tensor, world: World) -> torch.Tensor:
    """Scale a rank's summed loss (a scalar) so that DDP's gradient is that of the global mean.

    `count` is the `global_count` of the whole accumulation window, not of one micro-batch. A rank
    without samples passes a zero that depends on the parameters, so that its DDP takes part.
    """
    return local_sum * (world.world_size / count)
