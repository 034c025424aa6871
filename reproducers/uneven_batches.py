"""DDP207 uneven-batches: one rank runs out of batches first, and leaves the others waiting.

torchrun --nproc-per-node=4 reproducers/uneven_batches.py broken
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset

from ddpdoctor.reproducer import backend, broken, documented, fix, main, same_on_all_ranks
from ddpdoctor.stack.loss import global_count, global_mean
from ddpdoctor.stack.process_group import World, session, wrap
from ddpdoctor.stack.samplers import TrainingSampler

BATCH_SIZE = 4


class Points(Dataset[Tensor]):
    """Numbers from 0 on."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Tensor:
        return torch.tensor([float(index)], dtype=torch.float64)


def shard(data: Points, world: World) -> Subset[Tensor]:
    """Take this rank's part by slicing, as many a script does."""
    return Subset(data, range(len(data))[world.rank :: world.world_size])  # <-- DDP207


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(1, 1).double()


def step(model: nn.Module, optimizer: torch.optim.SGD, batch: Tensor) -> list[int]:
    """Take a step on the mean of this rank's batch; return the samples in it."""
    optimizer.zero_grad()
    (model(batch / 100) ** 2).mean().backward()
    optimizer.step()
    return [int(number) for number in batch]


def check(mine: Sequence[int], model: nn.Module, data: Points, world: World) -> None:
    """Assert that all samples were trained on once, and the ranks agree to the bit."""
    assert same_on_all_ranks(model.parameters()), "parameters differ between the ranks"
    shards: list[Sequence[int]] = [[]] * world.world_size
    dist.all_gather_object(shards, mine)
    seen = sorted(sample for each in shards for sample in each)
    left_out = sorted(set(range(len(data))) - set(seen))
    assert not left_out, f"{len(left_out)} of {len(data)} samples were never trained on"
    assert len(seen) < len(data) + world.world_size, "more samples came twice than padding needs"


@broken(ranks="nonzero")
def sliced_by_rank() -> None:
    """Slice the data by rank; rank 0 has one sample, and so one batch, more."""
    with session(backend=backend()) as world:
        data = Points(8 * world.world_size + 1)
        model = wrap(make_model(), world)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        mine: list[int] = []
        for batch in DataLoader(shard(data, world), BATCH_SIZE):
            mine += step(model, optimizer, batch)
        check(mine, model, data, world)


@documented(source="criteo/tf-yarn#79")
def drop_the_last_batch() -> None:
    """drop_last=True in the loader: 12 samples for rank 0, 11 for the others."""
    with session(backend=backend()) as world:
        data = Points(11 * world.world_size + 1)
        model = wrap(make_model(), world)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        mine: list[int] = []
        for batch in DataLoader(shard(data, world), BATCH_SIZE, drop_last=True):
            mine += step(model, optimizer, batch)
        check(mine, model, data, world)


@documented(source="pytorch/pytorch#38174, PyTorch documentation of Join")
def join_when_out_of_batches() -> None:
    """Train inside Join: a rank that is done shadows the others' all-reduces."""
    with session(backend=backend()) as world:
        data = Points(8 * world.world_size + 1)
        model = DistributedDataParallel(make_model())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        mine: list[int] = []
        with Join([model]):
            for batch in DataLoader(shard(data, world), BATCH_SIZE):
                mine += step(model, optimizer, batch)
        check(mine, model, data, world)


@documented(source="PyTorch documentation of DistributedSampler")
def padded_by_the_sampler() -> None:
    """Let a DistributedSampler repeat samples until all shards are equal."""
    with session(backend=backend()) as world:
        data = Points(8 * world.world_size + 1)
        model = wrap(make_model(), world)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        mine: list[int] = []
        sampler: DistributedSampler[Tensor] = DistributedSampler(data)
        for batch in DataLoader(data, BATCH_SIZE, sampler=sampler):
            mine += step(model, optimizer, batch)
        check(mine, model, data, world)


def train_exactly(model: nn.Module, length: int, batch_size: int, world: World) -> list[int]:
    """Train with equally many batches on all ranks, of which the last may be short or empty."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    mine: list[int] = []
    for indices in TrainingSampler(
        length, batch_size, num_replicas=world.world_size, rank=world.rank
    ):
        batch = torch.tensor(indices, dtype=torch.float64)[:, None]
        optimizer.zero_grad()
        total = (model(batch / 100) ** 2).sum()  # of no samples too: a 0 of the parameters
        global_mean(total, global_count(len(indices), world), world).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        mine += indices
    return mine


@fix()
def equal_counts_and_global_mean() -> None:
    """The stack's sampler and loss: nothing padded or dropped, the result of one process."""
    with session(backend=backend()) as world:
        data, model = Points(8 * world.world_size + 1), wrap(make_model(), world)
        check(train_exactly(model, len(data), BATCH_SIZE, world), model, data, world)
        alone, one = make_model(), World(0, 0, 1, world.device, None)
        train_exactly(alone, len(data), BATCH_SIZE * world.world_size, one)
        for parameter, expected in zip(model.parameters(), alone.parameters(), strict=True):
            off = (parameter - expected).abs().max().item()
            assert off < 1e-12, f"parameters are off by {off} from a single process"


if __name__ == "__main__":
    main()
