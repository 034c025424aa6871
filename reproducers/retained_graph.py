"""DDP601 retained-graph: a running total of losses keeps the graph of every step.

torchrun --nproc-per-node=4 reproducers/retained_graph.py broken
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ddpdoctor.reproducer import (
    backend,
    broken,
    documented,
    fix,
    main,
    measured,
    own_device,
    same_on_all_ranks,
)
from ddpdoctor.stack.process_group import session, wrap

WIDTH, BATCH, STEPS = 8, 4, 10

Total = Tensor | float


def build() -> nn.Module:
    """Build the same model on every rank."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))
    return net.to(own_device())


def loss_of(model: nn.Module, step: int) -> Tensor:
    """Return the loss of this rank's batch."""
    generator = torch.Generator().manual_seed(100 * step + dist.get_rank())
    x = torch.randn(BATCH, WIDTH, generator=generator).to(own_device())
    return nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True))


def kept(total: Total) -> int:
    """Count the nodes of graphs that this total keeps alive."""
    seen, waiting = set(), [total.grad_fn] if isinstance(total, Tensor) else []
    while waiting:
        if (node := waiting.pop()) is not None and node not in seen:
            seen.add(node)
            waiting += [parent for parent, _ in node.next_functions]
    return len(seen)


def report(total: Total) -> None:
    """Tell what the total keeps."""
    measured(f"after {STEPS} steps the total keeps {kept(total)} graph nodes")


def train(model: nn.Module, add: Callable[[Total, Tensor], Total]) -> None:
    """Train, add up the losses, and assert that the sum keeps no graph and is right."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    total: Total = 0.0
    alone = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, step)
        loss.backward()
        optimizer.step()
        total = add(total, loss)
        alone.append(loss.item())
    report(total)
    assert kept(total) == 0, f"the total keeps {kept(total)} graph nodes after {STEPS} steps"
    assert abs(float(total) - sum(alone)) < 1e-4, f"the total is {total}, not {sum(alone)}"
    assert same_on_all_ranks(model.parameters()), "parameters differ between the ranks"


@broken()
def add_up_the_losses() -> None:
    """Add up losses as they are, for the mean of the epoch."""
    dist.init_process_group(backend())
    model = DistributedDataParallel(build())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    total: Total = 0.0
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, step)
        loss.backward()
        optimizer.step()
        total += loss  # <-- DDP601
    report(total)
    del total, loss, model, optimizer
    dist.destroy_process_group()


@documented(source="Khrylx/PyTorch-RL#2, first attempt")
def delete_the_local_variable() -> None:
    """Add up losses as they are, and `del` them."""

    def add(total: Total, loss: Tensor) -> Total:
        total += loss
        del loss
        return total

    dist.init_process_group(backend())
    train(DistributedDataParallel(build()), add)
    dist.destroy_process_group()


@documented(source="PyTorch FAQ, My model reports out of memory")
def add_a_float() -> None:
    """Add up floats: total += float(loss)."""
    dist.init_process_group(backend())
    train(DistributedDataParallel(build()), lambda total, loss: total + float(loss))
    dist.destroy_process_group()


@fix()
def add_detached() -> None:
    """Add up what loss.detach() returns, and wait for no device."""
    with session(backend=backend()) as world:
        train(wrap(build(), world), lambda total, loss: total + loss.detach())


if __name__ == "__main__":
    main()
