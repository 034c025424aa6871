"""DDP204 sampler-seed-per-rank: each rank shuffles by another seed, and shards overlap.

torchrun --nproc-per-node=4 reproducers/sampler_seed_per_rank.py broken
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from ddpdoctor.reproducer import backend, broken, documented, fix, main, measured
from ddpdoctor.stack.process_group import World, session, wrap
from ddpdoctor.stack.rng import seed_generators
from ddpdoctor.stack.samplers import TrainingSampler

SEED = 42
LENGTH = 1200  # which 2, 3, 4, 5 and 6 ranks divide


class Points(Dataset[int]):
    """The numbers from 0 on."""

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> int:
        return index


def set_seed(seed: int) -> None:
    """Seed every global generator, as accelerate's function of this name does."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def loader_of(sampler: DistributedSampler[int]) -> DataLoader[int]:
    return DataLoader(Points(), batch_size=100, sampler=sampler)


def train(batches: Iterable[Tensor], world: World) -> None:
    """Train for an epoch; assert that it held every sample once, and that noise differs by rank."""
    model = wrap(nn.Linear(1, 1), world)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    mine: list[int] = []
    for batch in batches:
        mine += batch.tolist()
        noisy = nn.functional.dropout(batch[:, None] / LENGTH, 0.1)
        optimizer.zero_grad()
        (model(noisy) ** 2).mean().backward()
        optimizer.step()
    noise = gathered(torch.rand(4).tolist(), world)
    shards = gathered(mine, world)
    seen = {sample for shard in shards for sample in shard}
    never = 100 * (LENGTH - len(seen)) / LENGTH
    measured(f"{never:.1f} % of the samples were on no rank in this epoch")
    assert len(seen) == LENGTH, f"{never:.1f} % of the samples were on no rank"
    assert sum(map(len, shards)) == LENGTH, "samples came twice"
    assert len({tuple(numbers) for numbers in noise}) == world.world_size, "ranks share their noise"


def gathered(mine: Sequence[float], world: World) -> list[list[float]]:
    everyone: list[list[float]] = [[]] * world.world_size
    dist.all_gather_object(everyone, list(mine))
    return everyone


@broken()
def seed_of_the_rank() -> None:
    """Seed the sampler with seed + rank."""
    with session(backend=backend()) as world:
        seed = SEED + world.rank
        torch.manual_seed(seed)
        train(loader_of(DistributedSampler(Points(), seed=seed)), world)  # <-- DDP204


@documented(source="002 fix 3")
def seed_plus_process_index() -> None:
    """config.seed + process_index, wherever the training asks for its seed."""
    with session(backend=backend()) as world:
        seed_with_process = SEED + world.rank
        set_seed(seed_with_process)
        sampler: DistributedSampler[int] = DistributedSampler(Points(), seed=seed_with_process)
        train(loader_of(sampler), world)


@documented(source="002 fix 3")
def seed_plus_process_index_for_noise() -> None:
    """The same in set_seed alone: the sampler has its own, shared seed."""
    with session(backend=backend()) as world:
        set_seed(SEED + world.rank)
        sampler: DistributedSampler[int] = DistributedSampler(Points(), seed=SEED)
        train(loader_of(sampler), world)


@documented(source="mlcommons/training#625")
def one_seed_for_all_samplers() -> None:
    """The same seed for the sampler of every rank, and nothing else."""
    with session(backend=backend()) as world:
        set_seed(SEED + world.rank)
        shuffling_seeds = [SEED + rank for rank in range(world.world_size)]
        sampler: DistributedSampler[int] = DistributedSampler(Points(), seed=shuffling_seeds[0])
        train(loader_of(sampler), world)


@fix()
def shared_order_and_own_noise() -> None:
    """One seed for the order, generators of the rank for noise: the stack's two functions."""
    with session(backend=backend()) as world:
        seed_generators(SEED, world.rank)
        sampler = TrainingSampler(
            LENGTH, batch_size=100, num_replicas=world.world_size, rank=world.rank, seed=SEED
        )
        train(DataLoader(Points(), batch_sampler=sampler), world)


if __name__ == "__main__":
    main()
