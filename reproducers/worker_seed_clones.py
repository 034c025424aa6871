"""DDP210 worker-seed-clones: all loader workers of all ranks draw the same augmentation.

torchrun --nproc-per-node=4 reproducers/worker_seed_clones.py broken
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

from ddpdoctor.reproducer import backend, broken, documented, fix, main, measured
from ddpdoctor.stack.process_group import World, session
from ddpdoctor.stack.rng import seed_generators
from ddpdoctor.stack.samplers import exact_shard

SEED, EPOCHS, WORKERS, EACH = 42, 2, 2, 8  # samples per rank


class NoisyDataset(Dataset[int]):
    """Samples whose augmentation is one number, drawn from numpy's global generator."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.epoch = 0

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        return int(np.random.randint(2**62))


class OwnGenerator(NoisyDataset):
    """Has a generator of its own, as numpy recommends."""

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.rng = np.random.default_rng(SEED)  # <-- DDP210

    def __getitem__(self, index: int) -> int:
        return int(self.rng.integers(2**62))


def seed_everything(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def load(data: NoisyDataset, world: World, **options: Any) -> None:
    """Load some epochs; assert that no two samples of all ranks and epochs share their noise."""
    shard = exact_shard(len(data), world.rank, world.world_size)
    loader = DataLoader(data, 2, sampler=shard, num_workers=WORKERS, **options)
    drawn: list[int] = []
    for epoch in range(EPOCHS):
        data.epoch = epoch
        drawn += [number for batch in loader for number in batch.tolist()]
    everyone: list[list[int]] = [[]] * world.world_size
    dist.all_gather_object(everyone, drawn)
    total = sum(map(len, everyone))
    different = len({number for numbers in everyone for number in numbers})
    told = f"{different} different augmentations of {total} samples in {EPOCHS} epochs"
    measured(told)
    assert different == total, told


def make(kind: type[NoisyDataset], world: World) -> NoisyDataset:
    return kind(EACH * world.world_size)


@broken()
def generator_in_the_dataset() -> None:
    """Make a numpy generator when the dataset is made, and draw from it in the workers."""
    with session(backend=backend()) as world:
        seed_everything(SEED)
        load(make(OwnGenerator, world), world)


@documented(source="open-mmlab/OpenPCDet#886")
def seed_by_worker_id() -> None:
    """Seed numpy by the worker's number in worker_init_fn."""
    with session(backend=backend()) as world:
        seed_everything(SEED)
        load(
            make(NoisyDataset, world),
            world,
            worker_init_fn=np.random.seed,
        )


@documented(source="pytorch/pytorch#56488")
def leave_it_to_torch() -> None:
    """Do nothing: since torch 1.9 each worker seeds numpy differently."""
    with session(backend=backend()) as world:
        seed_everything(SEED)
        load(make(NoisyDataset, world), world)


def seed_worker(worker_id: int) -> None:
    worker_seed = torch.initial_seed() % 2**32
    np.random.seed(worker_seed)
    random.seed(worker_seed)


@documented(source="PyTorch documentation of reproducibility")
def seed_worker_and_generator() -> None:
    """seed_worker by torch.initial_seed(), and a seeded generator for the loader."""
    with session(backend=backend()) as world:
        generator = torch.Generator()
        generator.manual_seed(0)
        load(make(NoisyDataset, world), world, worker_init_fn=seed_worker, generator=generator)


@documented(source="nnaisense/bayesian-flow-networks#3")
def generator_by_rank() -> None:
    """The same, with the loader's generator seeded by seed + rank."""
    with session(backend=backend()) as world:
        generator = torch.Generator()
        generator.manual_seed(SEED + dist.get_rank())
        load(make(NoisyDataset, world), world, worker_init_fn=seed_worker, generator=generator)


@fix()
def generators_of_the_rank() -> None:
    """Seed the rank's generators once; its workers' seeds are drawn from them."""
    with session(backend=backend()) as world:
        seed_generators(SEED, world.rank)
        load(make(NoisyDataset, world), world)


class KeyedNoise(NoisyDataset):
    """Draws a sample's noise from its place: the same whichever rank or worker loads it."""

    def __getitem__(self, index: int) -> int:
        """Return the sample's noise of this epoch."""
        return int(np.random.default_rng([SEED, self.epoch, index]).integers(2**62))


@fix()
def noise_by_epoch_and_index() -> None:
    """A generator per sample, seeded by epoch and index."""
    with session(backend=backend()) as world:
        load(make(KeyedNoise, world), world)


if __name__ == "__main__":
    main()
