"""DDP206 unsynchronised-split: each rank splits the data by itself, and validates on others' data.

torchrun --nproc-per-node=4 reproducers/unsynchronised_split.py broken
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset, random_split

from ddpdoctor.reproducer import backend, broken, documented, fix, main, measured
from ddpdoctor.stack.outcome import on_main
from ddpdoctor.stack.process_group import World, session, wrap

LENGTH, HELD_OUT, BATCH_SIZE = 300, 60, 20

SIZES = [LENGTH - HELD_OUT, HELD_OUT]
Split = list[Subset[int]]


class Points(Dataset[int]):
    """The numbers from 0 on."""

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> int:
        return index


def train(split: Callable[[Dataset[int], World], Split]) -> None:
    """Train on one part, validate on the other; assert that no rank trained on what is held out."""
    with session(backend=backend()) as world:
        training, validation = split(Points(), world)
        sampler: DistributedSampler[int] = DistributedSampler(training)
        model = wrap(nn.Linear(1, 1), world)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        trained: set[int] = set()
        for batch in DataLoader(training, BATCH_SIZE, sampler=sampler):
            trained |= set(batch.tolist())
            optimizer.zero_grad()
            (model(batch[:, None] / LENGTH) ** 2).mean().backward()
            optimizer.step()
        validated = {int(n) for batch in DataLoader(validation, BATCH_SIZE) for n in batch}
        check(trained, validated, world)


def check(trained: set[int], validated: set[int], world: World) -> None:
    """Assert that all ranks hold out the same samples, and that none has trained on them."""
    everyone: list[tuple[set[int], set[int]]] = [(set(), set())] * world.world_size
    dist.all_gather_object(everyone, (trained, validated))
    anyone_trained = set().union(*(each for each, _ in everyone))
    leaked = max(len(held & anyone_trained) for _, held in everyone)
    measured(f"{leaked} of the {HELD_OUT} samples that a rank validates on were trained on")
    assert not leaked, f"{leaked} of {HELD_OUT} validation samples were trained on"
    assert all(held == validated for _, held in everyone), "the ranks hold out different samples"


def by_itself(data: Dataset[int], world: World) -> Split:
    return random_split(data, SIZES)  # <-- DDP206


@broken()
def split_without_a_seed() -> None:
    """random_split on every rank, as in one process; nothing is seeded."""
    torch.seed()  # what a process that was started, not forked, has from the beginning
    train(by_itself)


def with_process_seed(data: Dataset[int], world: World) -> Split:
    torch.manual_seed(42 + world.rank)
    return random_split(data, SIZES)


@documented(source="002 fix 3")
def seed_plus_process_index() -> None:
    """set_seed(config.seed + process_index), then split."""
    train(with_process_seed)


def with_global_seed(data: Dataset[int], world: World) -> Split:
    torch.manual_seed(123)
    return random_split(data, SIZES)


@documented(source="Lightning-AI/pytorch-lightning#7728")
def one_global_seed() -> None:
    """seed_everything(123) on all ranks, then split."""
    train(with_global_seed)


def with_global_seed_after_a_draw(data: Dataset[int], world: World) -> Split:
    torch.manual_seed(123)
    if world.is_main:
        print("a sample to look at:", int(torch.randint(LENGTH, ())))
    return random_split(data, SIZES)


@documented(source="Lightning-AI/pytorch-lightning#7728")
def one_global_seed_and_a_draw() -> None:
    """The same, and rank 0 draws one number before the split."""
    train(with_global_seed_after_a_draw)


def with_own_generator(data: Dataset[int], world: World) -> Split:
    return random_split(data, SIZES, generator=torch.Generator().manual_seed(0))


@documented(source="Lightning-Universe/lightning-bolts#140")
def generator_of_its_own() -> None:
    """Pass random_split a generator with a fixed seed."""
    train(with_own_generator)


@fix()
def split_by_a_shared_seed() -> None:
    """The same, whatever the global generators have been seeded with or drawn before."""

    def split(data: Dataset[int], world: World) -> Split:
        torch.manual_seed(42 + world.rank)
        return with_own_generator(data, world)

    train(split)


@fix()
def split_once_and_share() -> None:
    """Split on rank 0 alone, with any generator, and send the indices to all ranks."""

    def split(data: Dataset[int], world: World) -> Split:
        order = on_main(world, lambda: torch.randperm(LENGTH).tolist())
        return [Subset(data, order[HELD_OUT:]), Subset(data, order[:HELD_OUT])]

    train(split)


if __name__ == "__main__":
    main()
