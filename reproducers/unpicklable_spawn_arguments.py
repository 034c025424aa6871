"""DDP117 unpicklable-spawn-arguments: mp.spawn is handed a lambda, which no child can be sent.

python reproducers/unpicklable_spawn_arguments.py broken
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

from ddpdoctor.reproducer import (
    backend,
    broken,
    documented,
    fix,
    main,
    own_device,
    same_on_all_ranks,
    shared_folder,
)

RANKS = 2

Schedule = Callable[[int], float]


def train(schedule: Schedule) -> None:
    """Take four steps with this schedule, and assert that the learning rate has followed it."""
    torch.manual_seed(0)
    model = nn.Linear(1, 1).to(own_device())
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    for step in range(4):
        rate = scheduler.get_last_lr()[0]
        assert rate == 0.5 ** (step // 2), f"learning rate {rate} in step {step}"
        model(torch.ones(1, 1, device=own_device())).sum().backward()
        optimizer.step()
        scheduler.step()
    assert same_on_all_ranks(model.parameters()), "the ranks have different models"


def worker(rank: int, folder: Path, schedule: Schedule) -> None:
    """Join the other ranks and train."""
    os.environ["LOCAL_RANK"] = str(rank)
    method = f"file://{folder}/rendezvous"
    dist.init_process_group(backend(), init_method=method, rank=rank, world_size=RANKS)
    train(schedule)
    dist.destroy_process_group()


@broken(launch="python {proof} {variant}")
def lambda_as_argument() -> None:
    """Hand the schedule to the children as a lambda."""
    schedule: Schedule = lambda step: 0.5 ** (step // 2)  # noqa: E731 - the bug
    mp.spawn(worker, args=(shared_folder(), schedule), nprocs=RANKS)  # type: ignore[attr-defined, no-untyped-call]  # <-- DDP117


@dataclass(frozen=True)
class Halving:
    """Halve the learning rate every so many steps."""

    every: int

    def __call__(self, step: int) -> float:
        """Return the factor in this step."""
        return float(0.5 ** (step // self.every))


@documented(source="pytorch/xla#1554", launch="python {proof} {variant}")
def class_for_a_lambda() -> None:
    """Write a class with __call__ in place of the lambda: pickled by name and values."""
    mp.spawn(worker, args=(shared_folder(), Halving(every=2)), nprocs=RANKS)  # type: ignore[attr-defined, no-untyped-call]


@documented(
    source="NVIDIA/DeepLearningExamples#1120",
    launch="torchrun --nproc-per-node=2 {proof} {variant}",
)
def ranks_from_a_launcher() -> None:
    """Have a launcher start the ranks: nothing is handed over, so anything may be a lambda."""
    dist.init_process_group(backend())
    train(lambda step: 0.5 ** (step // 2))
    dist.destroy_process_group()


def worker_with_plain_data(rank: int, folder: Path, halve_every: int) -> None:
    """Build in the child what cannot be sent to it."""
    worker(rank, folder, lambda step: 0.5 ** (step // halve_every))


@fix(launch="python {proof} {variant}")
def plain_data_and_a_function_of_the_module() -> None:
    """Hand over numbers and paths, and build the lambda in the child."""
    mp.spawn(worker_with_plain_data, args=(shared_folder(), 2), nprocs=RANKS)  # type: ignore[attr-defined, no-untyped-call]


if __name__ == "__main__":
    main()
