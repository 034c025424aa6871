"""Results for a whole set, shared among the ranks, exact whatever their number."""

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
    columns: int | None = None,
) -> torch.Tensor:
    """Return the model's prediction for every sample, in order, on every rank (float64, CPU).

    One number each, or `columns` of them. A metric of these is then computed from the same numbers
    on every rank, so no two ranks can take different branches over it, and it is not a mean of
    means over padded shards.
    """
    # The bare module: DDP's forward would broadcast buffers, and shards differ in length.
    model = unwrap(model).eval()
    shape = (len(samples),) if columns is None else (len(samples), columns)
    predicted = torch.zeros(shape, dtype=torch.float64, device=world.device)
    shard = exact_shard(len(samples), world.rank, world.world_size)
    with together(world), torch.no_grad():
        for start in range(0, len(shard), batch_size):
            indices = list(shard[start : start + batch_size])
            batch = collate([samples[index] for index in indices])
            predicted[indices] = model(batch.to(world.device)).to(torch.float64)
    return _added(predicted, world).cpu()


def predict_ragged(
    model: nn.Module,
    samples: Sequence[Any],
    collate: Callable[[Sequence[Any]], Any],
    infer: Callable[[nn.Module, Any], Sequence[torch.Tensor]],
    columns: int,
    batch_size: int,
    world: World,
) -> list[torch.Tensor]:
    """Return a table for every sample, in order, on every rank (float64, CPU).

    `infer` returns one tensor (rows x columns) for each sample of a batch; how many rows, such as
    detections or masked residues, is its own affair.
    """
    model = unwrap(model).eval()
    shard = exact_shard(len(samples), world.rank, world.world_size)
    tables: list[torch.Tensor] = []
    with together(world), torch.no_grad():
        for start in range(0, len(shard), batch_size):
            batch = collate([samples[index] for index in shard[start : start + batch_size]])
            tables += infer(model, batch.to(world.device))
        if len(tables) != len(shard):
            raise ValueError(f"infer gave {len(tables)} tables for {len(shard)} samples")
    return gather_ragged(tables, len(samples), columns, world)


def gather_ragged(
    tables: Sequence[torch.Tensor], length: int, columns: int, world: World
) -> list[torch.Tensor]:
    """Return the tables of all ranks, in the order of the samples, on every rank (float64, CPU).

    `tables` are this rank's (rows x columns), one for each sample of its `exact_shard` of `length`
    samples. Nothing is padded, so nothing has to be cut off again, and a rank may have none. A
    collective: every rank must call it.
    """
    shard = exact_shard(length, world.rank, world.world_size)
    rows = torch.zeros(length, dtype=torch.int64, device=world.device)
    for index, table in zip(shard, tables, strict=True):
        rows[index] = len(table)
    sizes = _added(rows, world).tolist()
    joined = torch.zeros(sum(sizes), columns, dtype=torch.float64, device=world.device)
    places = torch.split(joined, sizes)
    for index, table in zip(shard, tables, strict=True):
        places[index].copy_(table)
    return list(torch.split(_added(joined, world).cpu(), sizes))


def _added(values: torch.Tensor, world: World) -> torch.Tensor:
    # Each place was filled by one rank and is 0 on all others, so adding loses no digit.
    if world.world_size > 1:
        dist.all_reduce(values)
    return values
