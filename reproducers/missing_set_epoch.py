"""DDP203 missing-set-epoch: the sampler is never told the epoch, so all epochs are one order.

torchrun --nproc-per-node=4 reproducers/missing_set_epoch.py broken
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from ddpdoctor.reproducer import backend, broken, documented, fix, main, measured
from ddpdoctor.stack.process_group import World, session, wrap
from ddpdoctor.stack.samplers import TrainingSampler

LENGTH, EPOCHS, BATCH_SIZE = 120, 3, 5  # a length that 2, 3, 4, 5 and 6 ranks divide


class Points(Dataset[int]):
    """The numbers from 0 on."""

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> int:
        return index


def train(batches: Callable[[int], Iterable[Tensor]], world: World) -> list[list[int]]:
    """Train for some epochs; return this rank's samples in each, in the order they came."""
    torch.manual_seed(0)
    model = wrap(nn.Linear(1, 1), world)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    orders: list[list[int]] = []
    for epoch in range(EPOCHS):
        orders.append([])
        for batch in batches(epoch):
            orders[-1] += batch.tolist()
            optimizer.zero_grad()
            (model(batch[:, None] / LENGTH) ** 2).mean().backward()
            optimizer.step()
    return orders


def check(orders: list[list[int]], world: World) -> None:
    """Assert that every epoch holds each sample once, in another order and other company."""
    for epoch, mine in enumerate(orders):
        dealt: list[list[int]] = [[]] * world.world_size
        dist.all_gather_object(dealt, mine)
        whole = sorted(sample for shard in dealt for sample in shard)
        assert whole == list(range(LENGTH)), f"epoch {epoch} did not hold every sample once"
    met = {frozenset(order[:BATCH_SIZE]) for order in orders}
    told = f"{len(met)} different first batches in {EPOCHS} epochs"
    measured(told)
    assert len(met) == EPOCHS, told


@broken()
def never_told_the_epoch() -> None:
    """Shuffle by a DistributedSampler; nobody calls set_epoch."""
    with session(backend=backend()) as world:
        data = Points()
        loader = DataLoader(data, BATCH_SIZE, sampler=DistributedSampler(data))  # <-- DDP203
        orders = train(lambda _: loader, world)
        assert len({tuple(order) for order in orders}) == 1, "the epochs had different orders"


@documented(source="facebookresearch/swav#103")
def shuffle_in_the_sampler_alone() -> None:
    """Leave it to the sampler: its shuffle is true by default."""
    with session(backend=backend()) as world:
        data = Points()
        sampler: DistributedSampler[int] = DistributedSampler(data, shuffle=True)
        loader = DataLoader(data, BATCH_SIZE, shuffle=False, sampler=sampler)
        check(train(lambda _: loader, world), world)


@documented(source="PyTorch documentation of DistributedSampler")
def set_epoch_before_each_iteration() -> None:
    """Call set_epoch at the start of each epoch, before the loader is iterated."""
    with session(backend=backend()) as world:
        data = Points()
        sampler: DistributedSampler[int] = DistributedSampler(data)
        loader = DataLoader(data, BATCH_SIZE, sampler=sampler)

        def batches(epoch: int) -> Iterable[Tensor]:
            sampler.set_epoch(epoch)
            return loader

        check(train(batches, world), world)


class CountingSampler(DistributedSampler[int]):
    """Takes each iteration for an epoch of its own."""

    def __iter__(self) -> Iterator[int]:
        indices = super().__iter__()
        self.epoch += 1
        return indices


@documented(source="pytorch/pytorch#11324")
def count_epochs_in_the_sampler() -> None:
    """Let the sampler add one to its epoch whenever it is iterated."""
    with session(backend=backend()) as world:
        data = Points()
        loader = DataLoader(data, BATCH_SIZE, sampler=CountingSampler(data))
        check(train(lambda _: loader, world), world)


@documented(source="pytorch/pytorch#11324")
def count_epochs_and_look_at_a_batch() -> None:
    """The same, and rank 0 looks at one batch before it trains."""
    with session(backend=backend()) as world:
        data = Points()
        loader = DataLoader(data, BATCH_SIZE, sampler=CountingSampler(data))
        if world.is_main:
            print("a batch looks like this:", next(iter(loader)))
        check(train(lambda _: loader, world), world)


@fix()
def stack_sampler_with_set_epoch() -> None:
    """The stack's sampler: told the epoch, shuffled by seed + epoch on every rank."""
    with session(backend=backend()) as world:
        sampler = TrainingSampler(
            LENGTH, BATCH_SIZE, num_replicas=world.world_size, rank=world.rank
        )
        loader = DataLoader(Points(), batch_sampler=sampler)

        def batches(epoch: int) -> Iterable[Tensor]:
            sampler.set_epoch(epoch)
            return loader

        check(train(batches, world), world)


if __name__ == "__main__":
    main()
