"""DDP414 work-not-awaited: the tensor of an asynchronous collective is read before it is ready.

torchrun --nproc-per-node=4 reproducers/work_not_awaited.py broken
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from ddpdoctor.reproducer import backend, broken, documented, fix, main, own_device
from ddpdoctor.stack.process_group import session

LATE = 0.3  # seconds that the last rank comes later than the others, as a straggler does


def local_loss() -> Tensor:
    """Return this rank's loss; the last rank takes a little longer for it."""
    rank = dist.get_rank()
    if rank == dist.get_world_size() - 1:
        time.sleep(LATE)
    return torch.full((1000,), float(rank + 1), device=own_device())


def check(loss: Tensor) -> None:
    """Assert that every rank read the sum over the ranks."""
    world_size = dist.get_world_size()
    expected = world_size * (world_size + 1) / 2
    read: list[float] = [0.0] * world_size
    dist.all_gather_object(read, loss[0].item())
    assert read == [expected] * world_size, f"read, by rank: {read}; the sum is {expected}"


@broken(ranks="all")
def read_at_once() -> None:
    """Start an all_reduce with async_op=True, and read its tensor."""
    dist.init_process_group(backend())
    loss = local_loss()
    dist.all_reduce(loss, async_op=True)  # <-- DDP414
    read = loss.clone()
    dist.barrier()
    check(read)
    dist.destroy_process_group()


def run(reduced: Callable[[Tensor], Tensor]) -> None:
    """Join, reduce, read, leave together."""
    dist.init_process_group(backend())
    read = reduced(local_loss()).clone()
    dist.barrier()
    check(read)
    dist.destroy_process_group()


def wait(loss: Tensor) -> Tensor:
    work = dist.all_reduce(loss, async_op=True)
    assert work is not None, "this rank is not in the group"
    work.wait()
    return loss


@documented(source="PyTorch documentation of torch.distributed: asynchronous collectives")
def wait_for_the_work() -> None:
    """Keep the work, and wait for it before the tensor is read."""
    run(wait)


def wait_for_the_future(loss: Tensor) -> Tensor:
    work = dist.all_reduce(loss, async_op=True)
    assert work is not None, "this rank is not in the group"
    work.get_future().wait()
    return loss


@documented(source="pytorch/pytorch#43386: the result by the work's future")
def wait_by_the_future() -> None:
    """Ask the work for its future, and wait for that."""
    run(wait_for_the_future)


@fix()
def overlap_then_wait() -> None:
    """Do something else meanwhile, and wait right before the tensor is read."""
    with session(backend=backend()):
        loss = local_loss()
        work = dist.all_reduce(loss, async_op=True)
        assert work is not None, "this rank is not in the group"
        # Anything that does not touch the loss may be done here.
        squares = torch.arange(1000, device=own_device()).square().sum()
        work.wait()
        check(loss)
        assert squares.item() == 332_833_500, f"the sum of squares is {squares}"


@fix()
def no_async_op() -> None:
    """Leave async_op out where nothing is done meanwhile."""
    with session(backend=backend()):
        loss = local_loss()
        dist.all_reduce(loss)
        check(loss)


if __name__ == "__main__":
    main()
