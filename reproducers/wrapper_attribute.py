"""DDP318 wrapper-attribute: the wrapper is asked for what belongs to the model inside.

torchrun --nproc-per-node=4 reproducers/wrapper_attribute.py broken
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from ddpdoctor.stack.process_group import session, unwrap, wrap

WIDTH, BATCH, STEPS = 6, 4, 8


class Autoencoder(nn.Module):
    """A model with a width to ask for, and with its loss as a method."""

    def __init__(self) -> None:
        super().__init__()
        self.latent = 3
        self.encoder, self.decoder = nn.Linear(WIDTH, self.latent), nn.Linear(self.latent, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Return the reconstruction of each sample."""
        reconstruction: Tensor = self.decoder(torch.tanh(self.encoder(x)))
        return reconstruction

    def loss(self, x: Tensor) -> Tensor:
        """Return the mean squared error of the reconstruction."""
        return (self(x) - x).square().mean()


class LossInForward(Autoencoder):
    """The same with its loss as the forward."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the mean squared error of the reconstruction."""
        return (super().forward(x) - x).square().mean()


def batch(step: int, rank: int) -> Tensor:
    """Make the batch of one rank."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(BATCH, WIDTH, dtype=torch.float64, generator=generator).to(own_device())


def build(kind: type[Autoencoder] = Autoencoder) -> Autoencoder:
    """Build the same model on every rank."""
    torch.manual_seed(0)
    return kind().double().to(own_device())


def train(model: nn.Module, loss_of: Callable[[Any, Tensor], Tensor]) -> None:
    """Train on this rank's batches."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(STEPS):
        loss = loss_of(model, batch(step, dist.get_rank()))
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()


def check(trained: nn.Module) -> None:
    """Assert that the ranks agree to the bit, and with one process that sees all their batches."""
    assert same_on_all_ranks(trained.parameters()), "parameters differ between the ranks"
    alone, ranks = build(), dist.get_world_size()
    optimizer = torch.optim.SGD(alone.parameters(), lr=0.05)
    for step in range(STEPS):
        optimizer.zero_grad()
        for rank in range(ranks):
            torch.autograd.backward(alone.loss(batch(step, rank)) / ranks)
        optimizer.step()
    for parameter, expected in zip(trained.parameters(), alone.parameters(), strict=True):
        off = (parameter - expected).abs().max().item()
        assert off < 1e-12, f"off by {off} from a single process"


@broken()
def loss_asked_of_the_wrapper() -> None:
    """Wrap the model, and go on calling its own method, model.loss(x)."""
    dist.init_process_group(backend())
    model = DistributedDataParallel(build())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(STEPS):
        loss = model.loss(batch(step, dist.get_rank()))  # <-- DDP318
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    del model, optimizer
    dist.destroy_process_group()


def read_by_module(model: DistributedDataParallel, x: Tensor) -> Tensor:
    assert model.module.latent == 3, "the attribute of another model"
    return (model(x) - x).square().mean()


@documented(source="karpathy/nanoGPT, ab21d6c: raw_model = model.module")
def read_through_module() -> None:
    """Ask model.module for what is not trained; train through the wrapper."""
    dist.init_process_group(backend())
    net = build()
    train(DistributedDataParallel(net), read_by_module)
    check(net)
    dist.destroy_process_group()


@documented(source="pytorch/pytorch#14616: model.module.f1(x), which should work")
def train_through_module() -> None:
    """Call the method of model.module, and train on what it returns."""
    dist.init_process_group(backend())
    net = build()
    train(DistributedDataParallel(net), lambda model, x: model.module.loss(x))
    check(net)
    dist.destroy_process_group()


class Forwarding(DistributedDataParallel):
    """Hands on whatever it does not have itself."""

    def __getattr__(self, name: str) -> Any:
        """Return the wrapper's own attribute, or that of the model inside."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)


@documented(source="pytorch/pytorch#128620: forward missing attributes to the module")
def forward_missing_attributes() -> None:
    """Subclass the wrapper with a __getattr__ that hands on; call model.loss(x)."""
    dist.init_process_group(backend())
    net = build()
    train(Forwarding(net), lambda model, x: model.loss(x))
    check(net)
    dist.destroy_process_group()


@documented(source="Lightning-AI/pytorch-lightning#17424: everything through forward")
def loss_in_forward() -> None:
    """Let forward return the loss, and call the wrapper."""
    dist.init_process_group(backend())
    net = build(LossInForward)
    train(DistributedDataParallel(net), lambda model, x: model(x))
    check(net)
    dist.destroy_process_group()


def reconstruct(model: nn.Module, x: Tensor) -> Tensor:
    """Compute the loss outside; ask the bare model for its attribute, and the wrapper to train."""
    bare: Any = unwrap(model)
    assert bare.latent == 3, "the attribute of another model"
    return (model(x) - x).square().mean()


@fix()
def unwrap_to_read_call_to_train() -> None:
    """Read attributes through the stack's unwrap; train by calling the wrapper."""
    with session(backend=backend()) as world:
        net = build()
        train(wrap(net, world), reconstruct)
        check(net)


if __name__ == "__main__":
    main()
