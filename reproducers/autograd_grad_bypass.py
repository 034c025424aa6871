"""DDP313 autograd-grad-bypass: gradients come from `torch.autograd.grad`, which DDP cannot see.

torchrun --nproc-per-node=4 reproducers/autograd_grad_bypass.py broken
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
from ddpdoctor.stack.process_group import session, wrap

WIDTH, BATCH, STEPS = 6, 4, 8

Gradients = Callable[[Any, Tensor], None]


def build() -> nn.Module:
    """Build the same model on every rank."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(WIDTH, 8), nn.Tanh(), nn.Linear(8, 1))
    return net.double().to(own_device())


def batch(step: int, rank: int) -> Tensor:
    """Make the batch of one rank."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(BATCH, WIDTH, dtype=torch.float64, generator=generator).to(own_device())


def loss_of(model: nn.Module, x: Tensor) -> Tensor:
    loss: Tensor = (model(x) - x.sum(dim=1, keepdim=True)).square().mean()
    return loss


def penalised(model: nn.Module, x: Tensor) -> Tensor:
    """Add a gradient penalty: how steep the model is in its input, as a WGAN-GP does."""
    x = x.clone().requires_grad_(True)
    (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    return loss_of(model, x) + slope.square().mean()


def train(model: nn.Module, gradients: Gradients) -> None:
    """Train on this rank's batches."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(STEPS):
        optimizer.zero_grad()
        gradients(model, batch(step, dist.get_rank()))
        optimizer.step()


def check(trained: nn.Module, loss: Callable[[nn.Module, Tensor], Tensor] = loss_of) -> None:
    """Assert that the ranks agree to the bit, and with one process that sees all their batches."""
    assert same_on_all_ranks(trained.parameters()), "parameters differ between the ranks"
    alone, world_size = build(), dist.get_world_size()
    optimizer = torch.optim.SGD(alone.parameters(), lr=0.05)
    for step in range(STEPS):
        optimizer.zero_grad()
        for rank in range(world_size):
            torch.autograd.backward(loss(alone, batch(step, rank)) / world_size)
        optimizer.step()
    for parameter, expected in zip(trained.parameters(), alone.parameters(), strict=True):
        off = (parameter - expected).abs().max().item()
        assert off < 1e-12, f"off by {off} from a single process"


@broken()
def gradients_taken_by_hand() -> None:
    """Take the gradients with torch.autograd.grad, set .grad, step."""
    dist.init_process_group(backend())
    net = build()
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(STEPS):
        loss = loss_of(model, batch(step, dist.get_rank()))
        taken = torch.autograd.grad(loss, list(model.parameters()))  # <-- DDP313
        for parameter, gradient in zip(model.parameters(), taken, strict=True):
            parameter.grad = gradient
        optimizer.step()
    del model, optimizer
    assert not same_on_all_ranks(net.parameters()), "the gradients were reduced after all"
    dist.destroy_process_group()


def run(gradients: Gradients, loss: Callable[[nn.Module, Tensor], Tensor] = loss_of) -> None:
    """Train a wrapped model in this way, and check what came of it."""
    dist.init_process_group(backend())
    net = build()
    train(DistributedDataParallel(net), gradients)
    check(net, loss)
    dist.destroy_process_group()


def accumulate_by_inputs(model: nn.Module, x: Tensor) -> None:
    parameters = list(model.parameters())
    torch.autograd.backward(loss_of(model, x), inputs=parameters)


@documented(source="PyTorch documentation of DistributedDataParallel: accumulate in .grad")
def backward_into_grad() -> None:
    """Call autograd.backward(inputs=parameters), which accumulates in .grad."""
    run(accumulate_by_inputs)


def backward_of_penalised(model: nn.Module, x: Tensor) -> None:
    torch.autograd.backward(penalised(model, x))


@documented(source="NVIDIA/apex#457, comment: no need to reduce out-of-place gradients")
def penalty_then_backward() -> None:
    """Take a gradient penalty by autograd.grad, add it to the loss, backward."""
    run(backward_of_penalised, penalised)


def average_by_hand(model: nn.Module, x: Tensor) -> None:
    parameters = list(model.parameters())
    for parameter, gradient in zip(
        parameters, torch.autograd.grad(loss_of(model, x), parameters), strict=True
    ):
        dist.all_reduce(gradient)
        parameter.grad = gradient / dist.get_world_size()


@documented(source="pytorch/pytorch#102197, comment: leave DDP out, share by hand")
def all_reduce_by_hand() -> None:
    """Leave the wrapper out: take gradients by autograd.grad, average them by hand."""
    dist.init_process_group(backend())
    net = build()
    train(net, average_by_hand)
    check(net)
    dist.destroy_process_group()


def backward_as_usual(model: nn.Module, x: Tensor) -> None:
    torch.autograd.backward(loss_of(model, x))


@fix()
def backward_through_the_wrapper() -> None:
    """Call backward(), and read the averaged gradients from .grad."""
    with session(backend=backend()) as world:
        net = build()
        train(wrap(net, world), backward_as_usual)
        check(net)


if __name__ == "__main__":
    main()
