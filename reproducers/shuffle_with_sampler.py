"""DDP209 shuffle-with-sampler: a loader is given a sampler, and shuffle=True as before.

torchrun --nproc-per-node=4 reproducers/shuffle_with_sampler.py broken
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from ddpdoctor.reproducer import backend, broken, documented, fix, main, same_on_all_ranks
from ddpdoctor.stack.process_group import World, session, wrap
from ddpdoctor.stack.samplers import TrainingSampler

LENGTH, EPOCHS = 120, 2  # which 2, 3, 4, 5 and 6 ranks divide


class Points(Dataset[int]):
    """The numbers from 0 on."""

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> int:
        return index


POINTS = Points()


def train(batches: Callable[[int], Iterable[Tensor]], world: World) -> None:
    """Train for some epochs; assert that each held every sample once, and that they differed."""
    torch.manual_seed(0)
    model = wrap(nn.Linear(1, 1), world)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    orders: list[list[list[int]]] = []
    for epoch in range(EPOCHS):
        mine: list[int] = []
        for batch in batches(epoch):
            mine += batch.tolist()
            optimizer.zero_grad()
            (model(batch[:, None] / LENGTH) ** 2).mean().backward()
            optimizer.step()
        dealt: list[list[int]] = [[]] * world.world_size
        dist.all_gather_object(dealt, mine)
        orders.append(dealt)
        read = sum(len(shard) for shard in dealt)
        assert read == LENGTH, f"{read} samples were read in an epoch of {LENGTH}"
        assert {s for shard in dealt for s in shard} == set(range(LENGTH)), "samples were left out"
        assert mine != sorted(mine), f"the samples came in order: {mine[:6]}"
    assert same_on_all_ranks(model.parameters()), "parameters differ between the ranks"


@broken()
def shuffle_and_a_sampler() -> None:
    """Add a DistributedSampler to a loader that shuffles."""
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    sampler: DistributedSampler[int] = DistributedSampler(POINTS, num_replicas=ranks, rank=rank)
    loader = DataLoader(POINTS, batch_size=5, shuffle=True, sampler=sampler)  # <-- DDP209
    with session(backend=backend()) as world:
        train(lambda _: loader, world)


@documented(source="wohlert/semi-supervised-pytorch#12, NVIDIA/tacotron2#168")
def remove_shuffle() -> None:
    """Remove shuffle from the loader: the sampler shuffles by itself."""
    with session(backend=backend()) as world:
        sampler: DistributedSampler[int] = DistributedSampler(POINTS)
        loader = DataLoader(POINTS, batch_size=5, sampler=sampler)
        train(lambda _: loader, world)


@documented(source="meijieru/crnn.pytorch#55")
def remove_the_sampler() -> None:
    """Remove the sampler instead, and keep shuffle=True."""
    with session(backend=backend()) as world:
        loader = DataLoader(POINTS, batch_size=5, shuffle=True, sampler=None)
        train(lambda _: loader, world)


@documented(source="PyTorch documentation of DistributedSampler")
def shuffle_only_without_a_sampler() -> None:
    """Pass shuffle=(sampler is None), and call set_epoch."""
    with session(backend=backend()) as world:
        sampler: DistributedSampler[int] = DistributedSampler(POINTS)
        loader = DataLoader(POINTS, batch_size=5, shuffle=(sampler is None), sampler=sampler)

        def batches(epoch: int) -> Iterable[Tensor]:
            sampler.set_epoch(epoch)
            return loader

        train(batches, world)


@fix()
def stack_sampler_deals_whole_batches() -> None:
    """Let one sampler decide order, shard and batches: batch_sampler=TrainingSampler."""
    with session(backend=backend()) as world:
        sampler = TrainingSampler(
            LENGTH, batch_size=5, num_replicas=world.world_size, rank=world.rank
        )
        loader = DataLoader(POINTS, batch_sampler=sampler)

        def batches(epoch: int) -> Iterable[Tensor]:
            sampler.set_epoch(epoch)
            return loader

        train(batches, world)


if __name__ == "__main__":
    main()
