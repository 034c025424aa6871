"""DDP211 batch-size-meaning: the batch of each rank is taken for that of all, or the reverse.

torchrun --nproc-per-node=4 reproducers/batch_size_meaning.py broken
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from ddpdoctor.reproducer import backend, broken, documented, fix, main, measured
from ddpdoctor.stack.process_group import World, session, wrap
from ddpdoctor.stack.samplers import TrainingSampler
from ddpdoctor.stack.scaling import per_rank_batch, scaled_rate

GLOBAL_BATCH = 24  # which 2, 3, 4 and 6 ranks divide
LENGTH = 20 * GLOBAL_BATCH
RATE = 0.004

Shards = DistributedSampler[tuple[Tensor, ...]]
Loader = DataLoader[tuple[Tensor, ...]]


def make_data() -> TensorDataset:
    """Make samples of a line, with some noise."""
    inputs = torch.linspace(-1, 1, LENGTH, dtype=torch.float64)[:, None]
    noise = torch.randn(LENGTH, 1, generator=torch.Generator().manual_seed(0))
    return TensorDataset(inputs, 3 * inputs + 1 + 0.1 * noise)


def train(model: nn.Module, optimizer: SGD, batches: Iterable[Sequence[Tensor]]) -> Tensor:
    """Train for an epoch on the mean loss; return the parameters, which begin at 0."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    for inputs, targets in batches:
        optimizer.zero_grad()
        ((model(inputs) - targets) ** 2).mean().backward()
        optimizer.step()
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def train_alone(batch_size: int, rate: float) -> Tensor:
    """Train in one process, with batches of this size."""
    data, model = make_data(), nn.Linear(1, 1).double()
    batches = TrainingSampler(LENGTH, batch_size, num_replicas=1, rank=0)
    return train(model, SGD(model.parameters(), lr=rate), (data[each] for each in batches))


def train_together(batch_size: int, rate: float, world: World) -> Tensor:
    """Train on all ranks, with batches of this size on each."""
    model = wrap(nn.Linear(1, 1).double(), world)
    shards = TrainingSampler(LENGTH, batch_size, num_replicas=world.world_size, rank=world.rank)
    loader: Loader = DataLoader(make_data(), batch_sampler=shards)
    return train(model, SGD(model.parameters(), lr=rate), loader)


def off(trained: Tensor, expected: Tensor) -> float:
    """Return how far apart two trainings ended, as a share of the way."""
    return float((trained - expected).norm() / expected.norm())


@broken()
def batch_divided_and_rate_multiplied() -> None:
    """Divide the batch among the ranks, and multiply the learning rate as if it had grown."""
    with session(backend=backend()) as world:
        data, world_size = make_data(), world.world_size
        model = DistributedDataParallel(nn.Linear(1, 1).double())
        per_rank = GLOBAL_BATCH // world_size
        sampler: Shards = DistributedSampler(data)
        loader = DataLoader(data, batch_size=per_rank, sampler=sampler)
        optimizer = SGD(model.parameters(), lr=RATE * world_size)  # <-- DDP211
        away = off(train(model, optimizer, loader), train_alone(GLOBAL_BATCH, RATE))
        measured(f"{away:.0%} off one process with the same batch")
        assert away < 0.01, f"the result is {away:.0%} off that of one process with the same batch"


@documented(source="000 expected performance, 001 performance tips 1, 003 batch size")
def batch_size_times_ranks() -> None:
    """Effective batch size = batch_size x ranks, for the same learning rate."""
    with session(backend=backend()) as world:
        trained = train_together(4, RATE, world)
        away = off(trained, train_alone(4 * world.world_size, RATE))
        assert away < 1e-12, f"{away} off one process with that batch"


@documented(source="001 data sharding")
def contiguous_ranges() -> None:
    """Of 10000 samples at 4 ranks, unshuffled, rank 0 has [0, 2500), rank 1 [2500, 5000), ..."""
    with session(backend=backend()) as world:
        each = 2500
        length = each * world.world_size
        data = TensorDataset(torch.arange(length))
        sampler: Shards = DistributedSampler(data, shuffle=False)
        begin = each * world.rank
        mine = list(sampler)
        inside = sum(begin <= sample < begin + each for sample in mine)
        measured(f"{inside} of the {each} samples of rank 0 are in [{begin}, {begin + each})")
        assert mine == list(range(begin, begin + each)), "the shard is no such range"


@documented(source="001 performance tips 2, 003 learning rate")
def linear_rule() -> None:
    """Multiply the learning rate by the number of ranks, under plain SGD."""
    with session(backend=backend()) as world:
        alone = train_alone(4, RATE)
        scaled = off(train_together(4, RATE * world.world_size, world), alone)
        kept = off(train_together(4, RATE, world), alone)
        measured(f"{scaled:.1%} off one process with batches of 4; {kept:.1%} with the rate kept")
        assert scaled < 0.05 < kept, f"{scaled:.1%} off, and {kept:.1%} with the rate kept"


@documented(source="Lightning-AI/pytorch-lightning#3706")
def rate_kept_as_gradients_are_averaged() -> None:
    """Keep rate and batch of each rank: gradients are averaged, so nothing changes."""
    with session(backend=backend()) as world:
        kept = off(train_together(4, RATE, world), train_alone(4, RATE))
        assert kept < 0.05, f"an epoch ends {kept:.0%} off that of one process with batches of 4"


@documented(source="003 learning rate")
def numbers_of_the_rules() -> None:
    """At 8 GPUs, 1e-4 becomes 8e-4 by the linear rule and 2.83e-4 by the square root."""
    assert round(scaled_rate(1e-4, 4, 32, "linear"), 6) == 8e-4
    assert round(scaled_rate(1e-4, 4, 32, "sqrt"), 6) == 2.83e-4
    assert scaled_rate(1e-4, 4, 32, "keep") == 1e-4


@documented(source="001 example of 200k structures")
def number_of_the_example() -> None:
    """At 8 GPUs with 64 each, learning_rate=0.004, scaled for the large batch from 0.001."""
    by_rule = scaled_rate(0.001, 64, 8 * 64, "linear")
    assert by_rule == 0.004, f"the document's own rule gives {by_rule}, not 0.004"


@fix()
def one_explicit_global_batch() -> None:
    """Fix the global batch, derive that of a rank: the result of one process."""
    with session(backend=backend()) as world:
        each = per_rank_batch(GLOBAL_BATCH, world.world_size)
        away = off(train_together(each, RATE, world), train_alone(GLOBAL_BATCH, RATE))
        measured(f"{LENGTH // GLOBAL_BATCH} steps in an epoch, on any number of ranks")
        assert away < 1e-12, f"{away} off one process"


if __name__ == "__main__":
    main()
