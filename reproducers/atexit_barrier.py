"""DDP409 atexit-barrier: a barrier at exit keeps a rank that has failed alive.

torchrun --nproc-per-node=4 reproducers/atexit_barrier.py broken
"""

from __future__ import annotations

import atexit
from collections.abc import Callable

import torch
import torch.distributed as dist

from ddpdoctor.reproducer import backend, broken, documented, fix, main, own_device
from ddpdoctor.stack.errors import RankFailedError
from ddpdoctor.stack.outcome import together
from ddpdoctor.stack.process_group import session

STEPS, BAD_STEP, BAD_RANK = 4, 2, 1


def read_batch(step: int) -> torch.Tensor:
    """Read a batch; one of rank 1 is damaged."""
    if (step, dist.get_rank()) == (BAD_STEP, BAD_RANK):
        raise ValueError(f"sample {step} is damaged")
    return torch.ones(1, device=own_device())


def train() -> int:
    """Train, and return the number of steps."""
    for step in range(STEPS):
        batch = read_batch(step)
        dist.all_reduce(batch)
        assert batch.item() == dist.get_world_size()
    return STEPS


def cleanup() -> None:
    """Wait for the others, then leave the group."""
    if dist.is_initialized():
        dist.barrier()  # <-- DDP409
        dist.destroy_process_group()


@broken(ranks=(1,))
def barrier_in_an_exit_hook() -> None:
    """atexit: barrier, destroy_process_group."""
    dist.init_process_group(backend())
    atexit.register(cleanup)
    train()


def must_fail(job: Callable[[], int]) -> None:
    """Run a job; assert that this rank learns by itself that the job has failed."""
    try:
        steps = job()
    except (ValueError, RuntimeError) as error:
        print(f"rank {dist.get_rank() if dist.is_initialized() else ''} ends: {error}")
    else:
        raise AssertionError(f"went through {steps} steps, though rank {BAD_RANK} failed")


@documented(source="pytorch/pytorch#124961")
def barrier_in_a_finally() -> None:
    """Whatever has happened: barrier, then destroy_process_group."""
    dist.init_process_group(backend())

    def job() -> int:
        try:
            return train()
        finally:
            dist.barrier()
            dist.destroy_process_group()

    must_fail(job)


@documented(source="EIFY/mup-vit#7, PyTorch forum 174299")
def barrier_at_the_end() -> None:
    """Barrier, then destroy_process_group, at the end of the program."""
    dist.init_process_group(backend())

    def job() -> int:
        steps = train()
        dist.barrier()
        dist.destroy_process_group()
        return steps

    must_fail(job)


@documented(source="Lightning-AI/pytorch-lightning#19931")
def destroy_in_an_exit_hook() -> None:
    """atexit: destroy_process_group alone."""
    dist.init_process_group(backend())
    atexit.register(dist.destroy_process_group)
    must_fail(train)


@documented(source="pytorch/torchtitan#1342")
def destroy_after_success_only() -> None:
    """destroy_process_group where nothing was raised."""
    dist.init_process_group(backend())

    def job() -> int:
        steps = train()
        dist.destroy_process_group()
        return steps

    must_fail(job)


@fix()
def session_without_hooks() -> None:
    """The session closes nothing after an exception: the exit tells the peers."""

    def job() -> int:
        with session(backend=backend()):
            return train()

    must_fail(job)


@fix()
def share_the_outcome() -> None:
    """All ranks raise the same error in the same step, and leave together."""
    with session(backend=backend()) as world:
        for step in range(STEPS):
            error = ""
            try:
                with together(world):
                    batch = read_batch(step)
            except RankFailedError as failure:
                error = str(failure)
            errors: list[str] = [""] * world.world_size
            dist.all_gather_object(errors, error)
            assert len(set(errors)) == 1, f"step {step}: the ranks raised {errors}"
            assert bool(error) == (step == BAD_STEP), f"step {step} raised {error!r}"
            if error:
                return
            dist.all_reduce(batch)


if __name__ == "__main__":
    main()
