"""DDP402 collective-order-mismatch: ranks call different collectives.

torchrun --nproc-per-node=4 reproducers/collective_order_mismatch.py broken
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from ddpdoctor.reproducer import (
    backend,
    broken,
    documented,
    fix,
    main,
    own_device,
    same_on_all_ranks,
)
from ddpdoctor.stack.outcome import on_main
from ddpdoctor.stack.process_group import session

STEPS, SEED = 4, 8
TASKS = ("contrast", "cluster", "distil")

Draw = Callable[[], str]


def own_task() -> Draw:
    """Draw tasks from a generator that each rank seeds for itself, "for diversity"."""
    generator = random.Random(SEED + dist.get_rank())
    return lambda: generator.choice(TASKS)


def share(task: str, features: Tensor) -> Tensor:
    """Return what a task needs of the other ranks' features."""
    if task == "contrast":
        parts = [torch.empty_like(features) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, features)  # <-- DDP402
        return torch.cat(parts)
    if task == "cluster":
        centre = features.clone()
        dist.all_reduce(centre)  # <-- DDP402
        return centre / dist.get_world_size()
    teacher = features.clone()
    dist.broadcast(teacher, src=0)  # <-- DDP402
    return teacher


def train(draw: Draw) -> None:
    """Do a task a step; assert that all ranks did the same ones, with the others' features."""
    done: list[str] = []
    for _ in range(STEPS):
        task = draw()
        rank, world_size = dist.get_rank(), dist.get_world_size()
        shared = share(task, torch.tensor([float(rank)], device=own_device()))
        ranks = list(range(world_size))
        expected = {"contrast": ranks, "cluster": [(world_size - 1) / 2], "distil": [0]}[task]
        assert shared.tolist() == expected, f"{task}: shared {shared.tolist()}, not {expected}"
        assert same_on_all_ranks([shared]), "the ranks hold different things"
        done.append(task)
    print(f"rank {dist.get_rank()} did {done}")


@broken(ranks=())
def task_drawn_by_each_rank() -> None:
    """Each rank draws its own task, and each task has its own collective."""
    dist.init_process_group(backend())
    train(own_task())
    dist.destroy_process_group()


@documented(source="NVIDIA/nccl#37")
def barrier_before_each() -> None:
    """A barrier before each collective."""
    dist.init_process_group(backend())
    draw = own_task()

    def wait_and_draw() -> str:
        dist.barrier()
        return draw()

    train(wait_and_draw)
    dist.destroy_process_group()


@documented(source="PyTorch documentation, debugging torch.distributed applications")
def torch_distributed_debug() -> None:
    """TORCH_DISTRIBUTED_DEBUG=DETAIL."""
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    dist.set_debug_level_from_env()  # type: ignore[attr-defined]
    dist.init_process_group(backend())
    train(own_task())
    dist.destroy_process_group()


@fix()
def one_seed_for_decisions() -> None:
    """All ranks draw from equal generators."""
    with session(backend=backend()):
        generator = random.Random(SEED)
        train(lambda: generator.choice(TASKS))


@fix()
def rank_0_draws_for_all() -> None:
    """Rank 0 draws, the others are told."""
    with session(backend=backend()) as world:
        train(lambda: on_main(world, lambda: random.choice(TASKS)))


if __name__ == "__main__":
    main()
