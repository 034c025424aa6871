"""DDP416 reduced-only-on-root: every rank goes by the result of `reduce`, which only the root has.

torchrun --nproc-per-node=4 reproducers/reduced_only_on_root.py broken
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from ddpdoctor.reproducer import backend, broken, documented, fix, main, measured, own_device
from ddpdoctor.stack.outcome import on_main
from ddpdoctor.stack.process_group import session

EPOCHS = 6


def validate(epoch: int) -> Tensor:
    """Return the summed loss of this rank's share of the validation set, and its size."""
    rank = dist.get_rank()
    mean = 1.0 / (1 + epoch) + 0.2 * rank + 0.1 * rank * epoch
    return torch.tensor([8 * mean, 8.0], dtype=torch.float64, device=own_device())


def expected(epoch: int) -> float:
    """Compute the mean loss as one process with the whole validation set would."""
    ranks = range(dist.get_world_size())
    means = [1.0 / (1 + epoch) + 0.2 * rank + 0.1 * rank * epoch for rank in ranks]
    return sum(means) / len(means)


def right(losses: list[float]) -> int:
    """Count the epochs in which this is the loss of one process."""
    return sum(abs(loss - expected(epoch)) < 1e-12 for epoch, loss in enumerate(losses))


def check(losses: list[float]) -> None:
    """Assert that every rank has the loss of one process, in each epoch."""
    seen = [0] * dist.get_world_size()
    dist.all_gather_object(seen, right(losses))
    told = f"epochs with the right loss, by rank: {seen}, of {EPOCHS}"
    measured(told)
    assert min(seen) == EPOCHS, told


@broken()
def reduce_then_decide_everywhere() -> None:
    """Reduce the loss to rank 0; every rank keeps its best by what it then holds."""
    dist.init_process_group(backend())
    losses, best = [], float("inf")
    for epoch in range(EPOCHS):
        total = validate(epoch)
        dist.reduce(total, dst=0)  # <-- DDP416
        loss = float(total[0] / total[1])
        if loss < best:
            best = loss
        losses.append(loss)
    check(losses)
    dist.destroy_process_group()


def reduce_for_the_log(total: Tensor) -> float:
    dist.reduce(total, dst=0)
    return float(total[0] / total[1])


@documented(source="allenai/OLMo#279: reduce() in place of all_gather(), as only rank 0 logs")
def rank_0_alone_reads() -> None:
    """Reduce to rank 0, and let rank 0 alone read it."""
    dist.init_process_group(backend())
    losses = [reduce_for_the_log(validate(epoch)) for epoch in range(EPOCHS)]
    if dist.get_rank() == 0:
        assert right(losses) == EPOCHS, f"rank 0 has {losses}"
    dist.barrier()
    dist.destroy_process_group()


def reduce_for_all(total: Tensor) -> float:
    dist.all_reduce(total)
    return float(total[0] / total[1])


@documented(source="pyg-team/pytorch_geometric#6913: all_reduce the summed loss")
def all_reduce() -> None:
    """Use all_reduce, which gives every rank the sum."""
    dist.init_process_group(backend())
    check([reduce_for_all(validate(epoch)) for epoch in range(EPOCHS)])
    dist.destroy_process_group()


@fix()
def rank_0_decides() -> None:
    """Reduce to rank 0, and let the stack's on_main share what it makes of it."""
    with session(backend=backend()) as world:
        losses = []
        for epoch in range(EPOCHS):
            total = validate(epoch)
            dist.reduce(total, dst=0)
            losses.append(on_main(world, lambda held=total: float(held[0] / held[1])))
        check(losses)


@fix()
def all_ranks_have_the_sum() -> None:
    """Use all_reduce in a session."""
    with session(backend=backend()):
        check([reduce_for_all(validate(epoch)) for epoch in range(EPOCHS)])


if __name__ == "__main__":
    main()
