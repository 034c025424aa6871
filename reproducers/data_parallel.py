"""DDP319 data-parallel: a script that a launcher starts wraps its model in `nn.DataParallel`.

torchrun --nproc-per-node=4 reproducers/data_parallel.py broken
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ddpdoctor.reproducer import (
    backend,
    broken,
    fix,
    main,
    measured,
    own_device,
    same_on_all_ranks,
)
from ddpdoctor.stack.process_group import session, wrap

WIDTH, BATCH, STEPS = 6, 4, 5


def build() -> nn.Module:
    """Build the same model on every rank."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(WIDTH, 8), nn.Tanh(), nn.Linear(8, 1))
    return net.double().to(own_device())


def batch(step: int, rank: int) -> Tensor:
    """Make the batch of one rank."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(BATCH, WIDTH, dtype=torch.float64, generator=generator).to(own_device())


def error(predicted: Tensor, x: Tensor) -> Tensor:
    return (predicted - x.sum(dim=1, keepdim=True)).square().mean()


def collectives() -> int:
    """Return how many collectives the group has seen: those that DDP makes are counted too."""
    group: Any = dist.group.WORLD
    return int(group._get_sequence_number_for_group())


def train(model: nn.Module) -> None:
    """Train on this rank's batches, and count how often the ranks communicate."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    before = collectives()
    for step in range(STEPS):
        x = batch(step, dist.get_rank())
        optimizer.zero_grad()
        torch.autograd.backward(error(model(x), x))
        optimizer.step()
    measured(f"{collectives() - before} collectives in {STEPS} steps")


def check(trained: nn.Module) -> None:
    """Assert that the ranks agree to the bit, and with one process that sees all their batches."""
    assert same_on_all_ranks(trained.parameters()), "parameters differ between the ranks"
    alone, ranks = build(), dist.get_world_size()
    optimizer = torch.optim.SGD(alone.parameters(), lr=0.05)
    for step in range(STEPS):
        optimizer.zero_grad()
        for rank in range(ranks):
            x = batch(step, rank)
            torch.autograd.backward(error(alone(x), x) / ranks)
        optimizer.step()
    for parameter, expected in zip(trained.parameters(), alone.parameters(), strict=True):
        off = (parameter - expected).abs().max().item()
        assert off < 1e-12, f"off by {off} from a single process"


@broken()
def data_parallel_in_each_rank() -> None:
    """Join the group, wrap in nn.DataParallel, train."""
    dist.init_process_group(backend())
    net = build()
    model = nn.DataParallel(net)  # <-- DDP319
    train(model)
    check(net)
    dist.destroy_process_group()


@fix(source="PyTorch documentation of DataParallel")
def wrap_in_a_session() -> None:
    """Let the stack's wrap bind the model to this rank's one device."""
    with session(backend=backend()) as world:
        net = build()
        train(wrap(net, world))
        check(net)


if __name__ == "__main__":
    main()
