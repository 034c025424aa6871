"""DDP202 no-sampler: nothing deals the data out, so every rank trains on all of it.

torchrun --nproc-per-node=4 reproducers/no_sampler.py broken
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from ddpdoctor.reproducer import (
    backend,
    broken,
    documented,
    fix,
    main,
    measured,
    same_on_all_ranks,
)
from ddpdoctor.stack.process_group import World, session, wrap
from ddpdoctor.stack.samplers import TrainingSampler

LENGTH, BATCH_SIZE = 120, 5  # a length that 2, 3, 4, 5 and 6 ranks divide


class Points(Dataset[int]):
    """The numbers from 0 on."""

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> int:
        return index


def train(
    batches: Callable[[int], Iterable[Tensor]], world: World, epochs: int = 2
) -> Counter[int]:
    """Train; return how often the ranks together have trained on each sample."""
    model = wrap(nn.Linear(1, 1), world)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    mine: Counter[int] = Counter()
    for epoch in range(epochs):
        for batch in batches(epoch):
            mine.update(batch.tolist())
            optimizer.zero_grad()
            (model(batch[:, None] / LENGTH) ** 2).mean().backward()
            optimizer.step()
    assert same_on_all_ranks(model.parameters()), "parameters differ between the ranks"
    counted: list[Counter[int]] = [Counter()] * world.world_size
    dist.all_gather_object(counted, mine)
    return sum(counted, Counter())


def check(seen: Counter[int], times: int) -> None:
    """Assert that each sample was trained on so many times, by all ranks together."""
    measured(f"{seen.total()} samples read, where {times} x {LENGTH} were meant")
    assert set(seen) == set(range(LENGTH)), "samples were left out"
    assert set(seen.values()) == {times}, f"samples came {max(seen.values())} times, not {times}"


@broken()
def one_loader_for_all() -> None:
    """Wrap the model in DDP, and leave the loader as it was."""
    with session(backend=backend()) as world:
        torch.manual_seed(0)
        loader = DataLoader(Points(), BATCH_SIZE, shuffle=True)  # <-- DDP202
        check(train(lambda _: loader, world), times=2)


@documented(source="clovaai/voxceleb_trainer#98")
def fewer_epochs_instead() -> None:
    """Let every rank shuffle the whole set, and divide the number of epochs by the ranks."""
    with session(backend=backend()) as world:
        torch.manual_seed(world.rank)  # else all ranks train on the same batches
        loader = DataLoader(Points(), BATCH_SIZE, shuffle=True)
        epochs = 2 * world.world_size
        check(train(lambda _: loader, world, epochs // world.world_size), times=epochs)


@documented(source="PyTorch documentation of DistributedSampler")
def distributed_sampler() -> None:
    """Give the loader a DistributedSampler, and call set_epoch."""
    with session(backend=backend()) as world:
        data = Points()
        sampler: DistributedSampler[int] = DistributedSampler(data)
        loader = DataLoader(data, BATCH_SIZE, sampler=sampler)

        def batches(epoch: int) -> Iterable[Tensor]:
            sampler.set_epoch(epoch)
            return loader

        check(train(batches, world), times=2)


@fix()
def stack_sampler() -> None:
    """Deal the batches with the stack's TrainingSampler."""
    with session(backend=backend()) as world:
        sampler = TrainingSampler(
            LENGTH, BATCH_SIZE, num_replicas=world.world_size, rank=world.rank
        )
        loader = DataLoader(Points(), batch_sampler=sampler)

        def batches(epoch: int) -> Iterable[Tensor]:
            sampler.set_epoch(epoch)
            return loader

        check(train(batches, world), times=2)


if __name__ == "__main__":
    main()
