"""DDP215 iterable-not-sharded: a stream gives every rank, or every worker, all of its samples.

torchrun --nproc-per-node=4 reproducers/iterable_not_sharded.py broken
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from ddpdoctor.reproducer import backend, broken, documented, fix, main, measured
from ddpdoctor.stack.process_group import World, session, wrap

STEPS, BATCH_SIZE, WORKERS = 4, 5, 2


def length(world: World) -> int:
    """Return how many samples fill the same number of batches on every worker of every rank."""
    return STEPS * WORKERS * BATCH_SIZE * world.world_size


class Stream(IterableDataset[int]):
    """The numbers from 0 on, as they come from a file or a socket."""

    def __init__(self, samples: int) -> None:
        super().__init__()
        self.samples = samples

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.samples))


def train(stream: Stream, loader: DataLoader[int], world: World) -> None:
    """Train on the stream; assert that each of its samples was trained on once."""
    model = wrap(nn.Linear(1, 1), world)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    mine: Counter[int] = Counter()
    for batch in loader:
        mine.update(batch.tolist())
        optimizer.zero_grad()
        (model(batch[:, None] / stream.samples) ** 2).mean().backward()
        optimizer.step()
    counted: list[Counter[int]] = [Counter()] * world.world_size
    dist.all_gather_object(counted, mine)
    seen = sum(counted, Counter[int]())
    measured(f"{seen.total()} samples read of a stream of {stream.samples}")
    assert set(seen) == set(range(stream.samples)), "samples were left out"
    assert set(seen.values()) == {1}, f"samples came {max(seen.values())} times"


@broken()
def stream_for_everyone() -> None:
    """Read the stream on every rank."""
    with session(backend=backend()) as world:
        stream = Stream(length(world))
        loader = DataLoader(stream, BATCH_SIZE)  # <-- DDP215
        train(stream, loader, world)


class WorkerStream(Stream):
    """Gives each loader worker a contiguous part, as the example of the documentation."""

    def __iter__(self) -> Iterator[int]:
        worker = get_worker_info()
        if worker is None:
            return iter(range(self.samples))
        each = -(-self.samples // worker.num_workers)
        return iter(range(worker.id * each, min((worker.id + 1) * each, self.samples)))


@documented(source="PyTorch documentation of IterableDataset, example 1")
def parts_by_worker() -> None:
    """Split the work among the workers by get_worker_info()."""
    with session(backend=backend()) as world:
        stream = WorkerStream(length(world))
        train(stream, DataLoader(stream, BATCH_SIZE, num_workers=WORKERS), world)


class RankStream(Stream):
    """Gives each rank its slice of the files, and each of its workers a slice of that."""

    def __init__(self, samples: int, rank: int, ranks: int) -> None:
        super().__init__(samples)
        self.rank, self.ranks = rank, ranks
        self.mine = range(rank, samples, ranks)

    def __iter__(self) -> Iterator[int]:
        worker = get_worker_info()
        return iter(self.mine[worker.id :: worker.num_workers] if worker else self.mine)


@documented(source="alex-hh/profam#391")
def parts_by_rank_then_by_worker() -> None:
    """Slice by rank when the dataset is made, by worker when it is iterated."""
    with session(backend=backend()) as world:
        stream = RankStream(length(world), world.rank, world.world_size)
        train(stream, DataLoader(stream, BATCH_SIZE, num_workers=WORKERS), world)


class SharedStream(RankStream):
    """Deals the samples to the workers of all ranks in turn."""

    def __iter__(self) -> Iterator[int]:
        worker = get_worker_info()
        workers, number = (worker.num_workers, worker.id) if worker else (1, 0)
        everyone = iter(range(self.samples))
        return islice(everyone, self.rank * workers + number, None, self.ranks * workers)


@documented(source="huggingface/datasets#3423")
def parts_by_rank_and_worker() -> None:
    """Take every n-th sample: rank * num_workers + worker, of ranks * num_workers."""
    with session(backend=backend()) as world:
        stream = SharedStream(length(world), world.rank, world.world_size)
        train(stream, DataLoader(stream, BATCH_SIZE, num_workers=WORKERS), world)


@fix()
def parts_by_rank_and_worker_without_workers() -> None:
    """The same class also where the loader has no workers, or one."""
    with session(backend=backend()) as world:
        stream = SharedStream(length(world), world.rank, world.world_size)
        for workers in (0, 1):
            train(stream, DataLoader(stream, BATCH_SIZE, num_workers=workers), world)


if __name__ == "__main__":
    main()
