"""DDP421 reduced-twice: a sum over the ranks of what backward has made the same on all of them.

torchrun --nproc-per-node=4 reproducers/reduced_twice.py broken
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ddpdoctor.reproducer import backend, broken, fix, main, own_device
from ddpdoctor.stack.process_group import World, session, wrap

STEPS = 6


def squared_norm(model: nn.Module) -> Tensor:
    """Return the square of the gradients' norm."""
    norms = [p.grad.norm() ** 2 for p in model.parameters() if p.grad is not None]
    return torch.stack(norms).sum()


def train(total: Callable[[Tensor], Tensor]) -> None:
    """Train; assert that the norm of all gradients is what torch says it is."""
    with session(backend=backend()) as world:
        model, optimizer = make(world)
        generator = torch.Generator().manual_seed(dist.get_rank())
        norms = []
        for _ in range(STEPS):
            batch = torch.randn(8, 4, generator=generator).to(own_device())
            model(batch).square().mean().backward()
            norm = total(squared_norm(model)).sqrt()
            norms.append((norm, nn.utils.clip_grad_norm_(model.parameters(), float("inf"))))
            optimizer.step()
            optimizer.zero_grad()
        norm, right = norms[-1]
        assert torch.isclose(norm, right), f"the norm is {norm:.4f}, and should be {right:.4f}"


def make(world: World) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = wrap(nn.Linear(4, 2), world)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def summed(square: Tensor) -> Tensor:
    dist.all_reduce(square)  # <-- DDP421
    return square


@broken(ranks="all")
def sum_of_equal_norms() -> None:
    """Add the squared norms of the ranks up, as if each held a shard of the gradients."""
    train(summed)


@fix(source="modelscope/twinkle#290")
def norm_of_each() -> None:
    """Take the norm as it is: after backward the gradients are whole on every rank."""
    train(lambda square: square)


if __name__ == "__main__":
    main()
