"""DDP213 unsorted-listing: the same files in another order on each node, so sample i differs.

torchrun --nproc-per-node=4 reproducers/unsorted_listing.py broken
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from ddpdoctor.reproducer import backend, broken, documented, fix, main, measured, shared_folder
from ddpdoctor.stack.outcome import on_main
from ddpdoctor.stack.process_group import World, session, wrap
from ddpdoctor.stack.samplers import TrainingSampler

NAMES = [f"sample-{number:02d}.txt" for number in range(48)]

Listing = Callable[[Path, World], list[Path]]


def download(world: World) -> Path:
    """Fill this node's own folder, from another file on than the other nodes; each rank is a node.

    The order in which a folder lists its files is up to the file system; it may be that of their
    creation. Their times, which one can set, stand for it here.
    """
    folder = shared_folder() / f"node-{world.rank}" / "data"
    folder.mkdir(parents=True)
    begin = world.rank * len(NAMES) // world.world_size
    for time, name in enumerate(NAMES[begin:] + NAMES[:begin]):
        path = folder / name
        path.write_text(str(NAMES.index(name)))
        os.utime(path, (time, time))
    return folder


class Files(Dataset[int]):
    """One sample per file."""

    def __init__(self, files: list[Path]) -> None:  # <-- DDP213
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> int:
        return int(self.files[index].read_text())


def by_time(folder: Path, world: World) -> list[Path]:
    """List the folder in the order in which its files were made."""
    return sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)


def train(loader: DataLoader[int], world: World) -> None:
    """Train for an epoch; assert that every file was read once."""
    model = wrap(nn.Linear(1, 1), world)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    mine: list[int] = []
    for batch in loader:
        mine += batch.tolist()
        optimizer.zero_grad()
        (model(batch[:, None] / len(NAMES)) ** 2).mean().backward()
        optimizer.step()
    shards: list[list[int]] = [[]] * world.world_size
    dist.all_gather_object(shards, mine)
    never = len(NAMES) - len({file for shard in shards for file in shard})
    measured(f"{never} of {len(NAMES)} files were read by no rank in this epoch")
    assert not never, f"{never} of {len(NAMES)} files were read by no rank"


def train_on(listing: Listing, *, seed: int = 0) -> None:
    """List this node's files, shard them, train."""
    with session(backend=backend()) as world:
        data = Files(listing(download(world), world))
        sampler: DistributedSampler[int] = DistributedSampler(data, seed=seed)  # <-- DDP213
        train(DataLoader(data, batch_size=4, sampler=sampler), world)


@broken(ranks="any")
def files_as_they_come() -> None:
    """List each node's folder in its own order, and shard by index."""
    train_on(by_time)


@documented(source="MMEngine documentation of sync_random_seed")
def one_seed_for_all_ranks() -> None:
    """Give all ranks the same shuffling seed, so that all shuffle alike."""
    train_on(by_time, seed=1234)


@documented(source="pytorch/vision#193, pytorch/pytorch#70103")
def sorted_by_name() -> None:
    """Wrap sorted() around the listing."""
    train_on(lambda folder, world: sorted(folder.iterdir()))


@fix()
def listed_by_rank_0() -> None:
    """List on rank 0 and send the names to all ranks; other nodes may have files too many."""

    def listing(folder: Path, world: World) -> list[Path]:
        if not world.is_main:
            (folder / "sample-00.bak").touch()
        names = on_main(world, lambda: [path.name for path in by_time(folder, world)])
        return [folder / name for name in names]

    train_on(listing)


@fix()
def sorted_names_and_the_stack_sampler() -> None:
    """Sort by name, deal with the stack's TrainingSampler."""
    with session(backend=backend()) as world:
        data = Files(sorted(download(world).iterdir()))
        sampler = TrainingSampler(
            len(data), batch_size=4, num_replicas=world.world_size, rank=world.rank
        )
        train(DataLoader(data, batch_sampler=sampler), world)


if __name__ == "__main__":
    main()
