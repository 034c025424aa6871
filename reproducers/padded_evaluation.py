"""DDP208 padded-evaluation: the sampler repeats samples, and the metric counts them twice.

torchrun --nproc-per-node=4 reproducers/padded_evaluation.py broken
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from ddpdoctor.reproducer import backend, broken, documented, fix, main, measured
from ddpdoctor.stack.evaluation import predict
from ddpdoctor.stack.process_group import World, session, unwrap, wrap
from ddpdoctor.stack.samplers import exact_shard

LENGTH, BATCH_SIZE = 61, 8  # a length that no number of ranks divides

Shards = DistributedSampler[tuple[Tensor, ...]]
Evaluate = Callable[[nn.Module, TensorDataset, World], float]


def make_data() -> TensorDataset:
    """Make a set in which the first samples, which are repeated, have by far the largest errors."""
    inputs = torch.arange(LENGTH, dtype=torch.float64)[:, None]
    targets = torch.where(inputs[:, 0] < 8, 50.0, 0.0).double()
    return TensorDataset(inputs, targets)


def evaluate_on_all_ranks(evaluate: Evaluate) -> None:
    """Assert that the ranks together compute the mean absolute error that one process computes."""
    with session(backend=backend()) as world:
        torch.manual_seed(0)
        net, data = nn.Sequential(nn.Linear(1, 1), nn.Flatten(0)).double(), make_data()
        with torch.no_grad():
            expected = (net(data.tensors[0]) - data.tensors[1]).abs().mean().item()
        metric = evaluate(wrap(net, world), data, world)
        measured(f"mean absolute error {metric:.3f}; {expected:.3f} in one process")
        assert abs(metric - expected) < 1e-9, f"the error is {metric:.3f}, not {expected:.3f}"


@torch.no_grad()
def errors(model: nn.Module, loader: DataLoader[tuple[Tensor, ...]]) -> Tensor:
    """Return the sum of the absolute errors of this rank's samples, and their number."""
    total = torch.zeros(2, dtype=torch.float64)
    for inputs, targets in loader:
        total[0] += (model(inputs) - targets).abs().sum()
        total[1] += len(inputs)
    return total


@broken()
def sums_over_padded_shards() -> None:
    """Evaluate with a DistributedSampler, and sum errors and counts over the ranks."""

    def evaluate(model: nn.Module, data: TensorDataset, world: World) -> float:
        sampler: Shards = DistributedSampler(data, shuffle=False)  # <-- DDP208
        total = errors(model, DataLoader(data, BATCH_SIZE, sampler=sampler))
        dist.all_reduce(total)
        return (total[0] / total[1]).item()

    evaluate_on_all_ranks(evaluate)


@documented(source="003 note 4")
def distributed_sampler_for_consistency() -> None:
    """Validate with a distributed sampler, too, and average the ranks' metrics."""

    def evaluate(model: nn.Module, data: TensorDataset, world: World) -> float:
        sampler: Shards = DistributedSampler(data, shuffle=False)
        total = errors(model, DataLoader(data, BATCH_SIZE, sampler=sampler))
        metric = total[0] / total[1]
        dist.all_reduce(metric)
        return metric.item() / world.world_size

    evaluate_on_all_ranks(evaluate)


@documented(source="pytorch/pytorch#25162")
def drop_the_rest() -> None:
    """Let the sampler drop the incomplete rest instead: drop_last=True."""

    def evaluate(model: nn.Module, data: TensorDataset, world: World) -> float:
        sampler: Shards = DistributedSampler(data, shuffle=False, drop_last=True)
        total = errors(model, DataLoader(data, BATCH_SIZE, sampler=sampler))
        dist.all_reduce(total)
        return (total[0] / total[1]).item()

    evaluate_on_all_ranks(evaluate)


@documented(source="mosaicml/composer#2218")
def gather_and_cut_off() -> None:
    """Gather what all ranks have, in the order of the set, and cut off the padding."""

    def evaluate(model: nn.Module, data: TensorDataset, world: World) -> float:
        sampler: Shards = DistributedSampler(data, shuffle=False)
        with torch.no_grad():
            mine = torch.cat(
                [(model(x) - y).abs() for x, y in DataLoader(data, BATCH_SIZE, sampler=sampler)]
            )
        parts = [torch.empty_like(mine) for _ in range(world.world_size)]
        dist.all_gather(parts, mine)
        return torch.stack(parts, dim=1).flatten()[: len(data)].mean().item()

    evaluate_on_all_ranks(evaluate)


@fix()
def exact_shards_and_sums() -> None:
    """Unpadded shards that may differ by one, one sum of errors and counts at the end."""

    def evaluate(model: nn.Module, data: TensorDataset, world: World) -> float:
        shard = exact_shard(LENGTH, world.rank, world.world_size)
        # Not through DDP: its forward may hold a collective, and shards differ in length.
        total = errors(unwrap(model), DataLoader(data, BATCH_SIZE, sampler=shard))
        dist.all_reduce(total)
        return (total[0] / total[1]).item()

    evaluate_on_all_ranks(evaluate)


def stack(samples: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(samples))


@fix()
def stack_predictions() -> None:
    """The stack's predict: all predictions in order on every rank, then the metric of one."""

    def evaluate(model: nn.Module, data: TensorDataset, world: World) -> float:
        inputs, targets = data.tensors
        predicted = predict(model, list(inputs), stack, BATCH_SIZE, world)
        return (predicted - targets).abs().mean().item()

    evaluate_on_all_ranks(evaluate)


if __name__ == "__main__":
    main()
