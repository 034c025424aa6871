"""Predictions for a whole set, shared among the ranks, exact whatever their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from ddpdoctor.stack.outcome import together
from ddpdoctor.stack.process_group import World, unwrap
from ddpdoctor.stack.samplers import exact_shard


def predict(
    model: nn.Module,
    samples: Sequence[Any],
    collate: Callable[[Sequence[Any]], Any],
    batch_size: int,
    world: World,
) -> torch.Tensor:
    """Return the model's prediction for every sample, in order, on every rank (float64, CPU).

    A metric of these is then computed from the same numbers on every rank, so no two ranks can
    take different branches over it, and it is not a mean of means over padded shards.
    """
    # The bare module: DDP's forward would broadcast buffers, and shards differ in length.
    model = unwrap(model).eval()
    predicted = torch.zeros(len(samples), dtype=torch.float64, device=world.device)
    shard = exact_shard(len(samples), world.rank, world.world_size)
    with together(world), torch.no_grad():
        for start in range(0, len(shard), batch_size):
            indices = list(shard[start : start + batch_size])
            batch = collate([samples[index] for index in indices])
            predicted[indices] = model(batch.to(world.device)).to(torch.float64)
    if world.world_size > 1:
        # Each place was filled by one rank and is 0 on all others, so adding loses no digit.
        dist.all_reduce(predicted)
    return predicted.cpu()
