"""DDP422 collective-inside-join: a collective of the script's own where ranks run out of data.

torchrun --nproc-per-node=2 reproducers/collective_inside_join.py broken
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

from ddpdoctor.reproducer import backend, broken, fix, main, own_device
from ddpdoctor.stack.process_group import session

BATCHES = 6


def batches() -> list[Tensor]:
    """Return this rank's batches: each rank has two more than the one before."""
    rank = dist.get_rank()
    generator = torch.Generator().manual_seed(rank)
    count = BATCHES + 2 * rank
    return [torch.randn(8, 4, generator=generator).to(own_device()) for _ in range(count)]


def make() -> tuple[DistributedDataParallel, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(4, 1).to(own_device()))
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


@broken(ranks="any")
def reduce_inside() -> None:
    """Average the loss over the ranks after every batch, inside of Join."""
    with session(backend=backend()):
        model, optimizer = make()
        with Join([model]):
            for batch in batches():
                loss = model(batch).square().mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                total = torch.tensor([float(loss.detach()), 1.0], device=own_device())
                dist.all_reduce(total)  # <-- DDP422


@fix(source="PyTorch documentation of torch.distributed.algorithms.Join")
def reduce_after() -> None:
    """Add up on each rank, and reduce once, after Join."""
    with session(backend=backend()):
        model, optimizer = make()
        total = torch.zeros(2, device=own_device())
        mine = batches()
        with Join([model]):
            for batch in mine:
                loss = model(batch).square().mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                total += torch.tensor([float(loss.detach()), 1.0], device=own_device())
        dist.all_reduce(total)
        world_size = dist.get_world_size()
        counted = sum(BATCHES + 2 * rank for rank in range(world_size))
        assert total[1] == counted, f"{total[1]} batches were counted of {counted}"


if __name__ == "__main__":
    main()
