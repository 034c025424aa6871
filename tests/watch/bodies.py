"""What the watched ranks of test_watch.py do. Lines are found by their comment, not by number."""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

FOLDER = Path(os.environ.get("DDPDOCTOR_RUN_DIR", "."))


def record_everything() -> None:
    """One of each kind of event, without any defect."""
    dist.init_process_group("gloo")
    sampler = DistributedSampler(list(range(10)), seed=3)  # the sampler
    loader = DataLoader(list(range(10)), sampler=sampler, batch_size=2)
    net = DistributedDataParallel(nn.Linear(2, 2))  # the wrapper
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in loader:
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    tensor = torch.ones(3)
    dist.broadcast(tensor, src=1)  # the broadcast
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    if dist.get_rank() == 0:
        torch.save({"model": 1, "ema": 2}, FOLDER / "temporary")  # the save
        (FOLDER / "temporary").replace(FOLDER / "final")
    dist.barrier()
    torch.load(FOLDER / "final", weights_only=True)
    del net, optimizer
    dist.destroy_process_group()


def destroy_one_group_then_all() -> None:
    """A group that is destroyed by itself, one that goes with the world, and then the world."""
    dist.init_process_group("gloo")
    dist.new_group()
    dist.barrier()
    alone = dist.new_group()
    dist.barrier()  # or who is first destroys it while another still connects
    dist.destroy_process_group(alone)
    dist.barrier()
    dist.destroy_process_group()  # the end of the world


def raise_with_a_cause() -> None:
    """An exception raised from another, with a library frame innermost."""
    try:
        torch.load(FOLDER / "missing")
    except FileNotFoundError as error:
        raise RuntimeError("no checkpoint") from error  # the raise


def rank_conditional_barrier() -> None:
    """Rank 0 waits in a barrier, the others in backward."""
    dist.init_process_group("gloo")
    net = DistributedDataParallel(nn.Linear(2, 2))
    if dist.get_rank() == 0:
        dist.barrier()  # the barrier
    for _ in range(3):
        net(torch.ones(1, 2)).sum().backward()  # the backward


def one_rank_is_slow() -> None:
    """Nobody is dead: rank 0 sleeps for a while, the others wait for it."""
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        time.sleep(1.2)
    dist.barrier()
    dist.destroy_process_group()


def one_rank_computes() -> None:
    """Nobody is dead: rank 0 computes for a while with an unfinished collective behind it."""
    dist.init_process_group("gloo")
    work = dist.all_reduce(torch.ones(2), async_op=True)
    if dist.get_rank() == 0:
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            torch.linalg.svd(torch.rand(300, 300))
    assert work is not None
    work.wait()
    dist.barrier()
    dist.destroy_process_group()


def groups_in_a_circle() -> None:
    """Ranks 0 and 1 take two groups in opposite order; ranks 2 and 3 wait for them."""
    dist.init_process_group("gloo")
    first, second = dist.new_group([0, 1]), dist.new_group([0, 1])
    ordered = {0: (first, second), 1: (second, first)}
    for group in ordered.get(dist.get_rank(), ()):
        dist.all_reduce(torch.ones(1), group=group)
    dist.barrier()


def barrier_at_exit() -> None:
    """Rank 1 raises and stays alive in its exit barrier; the others wait in a broadcast."""
    import atexit

    atexit.register(lambda: dist.barrier())  # the exit barrier
    dist.init_process_group("gloo")
    if dist.get_rank() == 1:
        raise ValueError("bad label")
    dist.broadcast(torch.ones(1), src=1)


def a_model_whose_classes_misbehave() -> None:
    """A class that raises when the doctor asks it for a module must not suffer from it."""

    class Awkward(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(2, 2), nn.Linear(2, 2)

        def __getattr__(self, name: str) -> object:
            if name == "unused":
                raise RuntimeError("do not ask")
            return super().__getattr__(name)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.used(x)

    dist.init_process_group("gloo")
    net = DistributedDataParallel(Awkward(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    del net, optimizer
    dist.destroy_process_group()
