"""DDP214 metric-not-reduced: the best checkpoint is chosen by what one rank saw of the data.

torchrun --nproc-per-node=4 reproducers/metric_not_reduced.py broken
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, TensorDataset

from ddpdoctor.reproducer import backend, broken, documented, fix, main, shared_folder
from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.evaluation import predict
from ddpdoctor.stack.process_group import World, session, unwrap

LENGTH, EPOCHS, BATCH_SIZE = 61, 4, 8  # a length that no number of ranks divides

Shards = DistributedSampler[tuple[Tensor, ...]]
Evaluate = Callable[[nn.Module, World], float]

INPUTS = torch.arange(LENGTH, dtype=torch.float64)[:, None]
TARGETS = torch.where(INPUTS[:, 0] == 0, 200.0, 5.0).double()  # one that not every rank sees
DATA: Dataset[tuple[Tensor, ...]] = TensorDataset(INPUTS, TARGETS)


class Constant(nn.Module):
    """Predicts one number for all samples, which is all that it learns."""

    def __init__(self) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.zeros((), dtype=torch.float64))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the number, once per sample."""
        return self.value.expand(len(inputs))


def train_epoch(model: nn.Module, epoch: int) -> None:
    """Go on to the next model: 16, 12, 8, 4; the mean of all targets is 8.2."""
    with torch.no_grad():
        next(unwrap(model).parameters()).fill_(4.0 * (EPOCHS - epoch))


def error(model: nn.Module) -> float:
    """Return the mean squared error over all samples, as one process computes it."""
    with torch.no_grad():
        return nn.functional.mse_loss(unwrap(model)(INPUTS), TARGETS).item()


def check(path: Path, world: World) -> None:
    """Assert that the model that was kept is the best of all epochs."""
    dist.barrier()
    model, errors = Constant(), []
    for epoch in range(EPOCHS):
        train_epoch(model, epoch)
        errors.append(error(model))
    model.load_state_dict(torch.load(path, weights_only=True))
    kept = errors.index(error(model))
    best = errors.index(min(errors))
    told = f"epoch {kept} was kept as the best, with an error of {errors[kept]:.1f}"
    assert kept == best, f"{told}; epoch {best} has {errors[best]:.1f}"


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader[tuple[Tensor, ...]]) -> float:
    """Return the mean squared error over the samples of this loader."""
    total, count = 0.0, 0
    for inputs, targets in loader:
        total += nn.functional.mse_loss(unwrap(model)(inputs), targets, reduction="sum").item()
        count += len(inputs)
    return total / count


@broken()
def best_of_one_rank() -> None:
    """Rank 0 keeps the model that is best on its own shard."""
    with session(backend=backend()) as world:
        model = DistributedDataParallel(Constant())
        sampler: Shards = DistributedSampler(DATA, shuffle=False)
        loader = DataLoader(DATA, BATCH_SIZE, sampler=sampler)
        path, best = shared_folder() / "best.pt", float("inf")
        for epoch in range(EPOCHS):
            train_epoch(model, epoch)
            val_loss = evaluate(model, loader)
            if val_loss < best:  # <-- DDP214
                best = val_loss
                if world.rank == 0:
                    torch.save(unwrap(model).state_dict(), path)
        check(path, world)
        del model


def keep_the_best(evaluate_once: Evaluate, world: World) -> None:
    """Train, and keep the model that is best by a metric that every rank has."""
    model = DistributedDataParallel(Constant())
    path, best = shared_folder() / "best.pt", float("inf")
    for epoch in range(EPOCHS):
        train_epoch(model, epoch)
        metric = evaluate_once(model, world)
        metrics = [0.0] * world.world_size
        dist.all_gather_object(metrics, metric)
        assert len(set(metrics)) == 1, f"the ranks hold different metrics: {metrics}"
        assert abs(metric - error(model)) < 1e-9, f"{metric:.3f}, not {error(model):.3f}"
        if metric < best:
            best = metric
            checkpoint.save(unwrap(model).state_dict(), path, world)
    check(path, world)


@documented(source="Lightning-AI/pytorch-lightning#8190, sync_dist=True")
def average_of_the_ranks() -> None:
    """Average the ranks' metrics over the ranks."""

    def averaged(model: nn.Module, world: World) -> float:
        sampler: Shards = DistributedSampler(DATA, shuffle=False)
        loader = DataLoader(DATA, BATCH_SIZE, sampler=sampler)
        mine = torch.tensor(evaluate(model, loader), dtype=torch.float64)
        dist.all_reduce(mine)
        return mine.item() / world.world_size

    with session(backend=backend()) as world:
        keep_the_best(averaged, world)


@fix()
def metric_of_all_predictions() -> None:
    """The stack's predict: each sample once, and the same metric on every rank."""

    def exact(model: nn.Module, world: World) -> float:
        predicted = predict(
            model, list(INPUTS), lambda rows: torch.stack([*rows]), BATCH_SIZE, world
        )
        return nn.functional.mse_loss(predicted, TARGETS).item()

    with session(backend=backend()) as world:
        keep_the_best(exact, world)


@fix()
def sums_and_counts() -> None:
    """Sum errors and counts over unpadded shards, then divide once."""

    def summed(model: nn.Module, world: World) -> float:
        mine = range(world.rank, LENGTH, world.world_size)
        with torch.no_grad():
            errors = (unwrap(model)(INPUTS[mine]) - TARGETS[mine]) ** 2
        total = torch.tensor([errors.sum().item(), len(mine)], dtype=torch.float64)
        dist.all_reduce(total)
        return (total[0] / total[1]).item()

    with session(backend=backend()) as world:
        keep_the_best(summed, world)


if __name__ == "__main__":
    main()
