"""DDP420 aliased-outputs: what is gathered lands in one tensor, n times.

torchrun --nproc-per-node=4 reproducers/aliased_outputs.py broken
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from ddpdoctor.reproducer import backend, broken, fix, main, own_device
from ddpdoctor.stack.process_group import session


def scores() -> Tensor:
    """Return this rank's predictions."""
    return torch.arange(3, device=own_device()) + 10.0 * dist.get_rank()


def check(gathered: list[Tensor]) -> None:
    """Assert that every rank holds what each rank has sent."""
    here = [float(tensor[0]) for tensor in gathered]
    there = [10.0 * rank for rank in range(dist.get_world_size())]
    assert here == there, f"gathered {here}, and the ranks have sent {there}"


@broken(ranks="all")
def one_tensor_many_times() -> None:
    """Gather into [zeros] * n, which is one tensor n times."""
    with session(backend=backend()):
        mine = scores()
        gathered = [torch.zeros_like(mine)] * dist.get_world_size()
        dist.all_gather(gathered, mine)  # <-- DDP420
        check(gathered)


@fix(source="Lightning-AI/pytorch-lightning#3253")
def a_tensor_for_each() -> None:
    """Make the tensors in a comprehension."""
    with session(backend=backend()):
        mine = scores()
        gathered = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(gathered, mine)
        check(gathered)


@fix()
def one_tensor_for_all() -> None:
    """Gather into one tensor that has room for all."""
    with session(backend=backend()):
        mine = scores()
        whole = mine.new_zeros(dist.get_world_size() * len(mine))
        dist.all_gather_into_tensor(whole, mine)
        check(list(whole.view(-1, len(mine))))


if __name__ == "__main__":
    main()
