"""DDP303 bypassed-wrapper: the forward pass goes past DDP, so no gradient is ever reduced.

torchrun --nproc-per-node=4 reproducers/bypassed_wrapper.py broken
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
    own_device,
    same_on_all_ranks,
)
from ddpdoctor.stack.process_group import session, wrap

WIDTH, BATCH, STEPS = 8, 4, 8


class Regressor(nn.Module):
    """A model that can also be asked for its loss, as many can."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return a prediction for each sample."""
        return self.head(torch.tanh(self.encoder(x)))

    def loss(self, x: Tensor) -> Tensor:
        """Return the loss of a batch."""
        return deviation(self(x), x)


class LossInForward(Regressor):
    """The same, with its loss as the forward."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the loss of a batch."""
        return deviation(super().forward(x), x)


def deviation(predicted: Tensor, x: Tensor) -> Tensor:
    return (predicted - x.sum(dim=1, keepdim=True)).square().mean()


def batch(step: int, world_size: int) -> Tensor:
    """Make the batch of all ranks for one step."""
    generator = torch.Generator().manual_seed(step)
    return torch.randn(world_size * BATCH, WIDTH, dtype=torch.float64, generator=generator).to(
        own_device()
    )


def build(kind: type[Regressor] = Regressor) -> Regressor:
    """Build the same model on every rank."""
    torch.manual_seed(0)
    return kind().double().to(own_device())


def train(model: nn.Module, loss_of: Callable[[Tensor], Tensor], rank: int, ranks: int) -> None:
    """Train on this rank's part of each batch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(STEPS):
        loss = loss_of(batch(step, dist.get_world_size())[rank::ranks])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def check(trained: nn.Module) -> None:
    """Assert that the ranks agree to the bit, and with one process that sees whole batches."""
    assert same_on_all_ranks(trained.parameters()), "parameters differ between the ranks"
    alone = build()
    train(alone, alone.loss, 0, 1)
    for parameter, expected in zip(trained.parameters(), alone.parameters(), strict=True):
        off = (parameter - expected).abs().max().item()
        assert off < 1e-12, f"off by {off} from a single process"


@broken()
def call_the_module_inside() -> None:
    """Train through model.module, by a method that computes the loss."""
    dist.init_process_group(backend())
    rank, world_size = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(build())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(STEPS):
        loss = model.module.loss(batch(step, world_size)[rank::world_size])  # <-- DDP303
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    del model, optimizer
    dist.destroy_process_group()


@documented(source="k2-fsa/icefall#226, comment")
def forward_is_not_required() -> None:
    """Call a second method of the bare module, as DDP's forward is "not required"."""
    dist.init_process_group(backend())
    net = build()
    model = DistributedDataParallel(net)
    train(model, model.module.loss, dist.get_rank(), dist.get_world_size())
    del model
    check(net)
    dist.destroy_process_group()


@fix()
def call_the_wrapper() -> None:
    """Call the wrapper, and compute the loss outside of it."""
    with session(backend=backend()) as world:
        net = build()
        model = wrap(net, world)
        train(model, lambda x: deviation(model(x), x), world.rank, world.world_size)
        check(net)


@fix()
def compute_the_loss_in_forward() -> None:
    """Let forward return the loss, and call the wrapper."""
    with session(backend=backend()) as world:
        net = build(LossInForward)
        train(net_wrapper := wrap(net, world), net_wrapper, world.rank, world.world_size)
        check(net)


@fix()
def call_forward_by_name() -> None:
    """Call wrapper.forward(x): it skips hooks of the wrapper, and not DDP."""
    with session(backend=backend()) as world:
        net = build()
        model = wrap(net, world)
        train(model, lambda x: deviation(model.forward(x), x), world.rank, world.world_size)
        check(net)


if __name__ == "__main__":
    main()
