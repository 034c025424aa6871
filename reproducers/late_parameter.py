"""DDP305 late-parameter: what is added or unfrozen after the wrap is in no bucket of DDP.

torchrun --nproc-per-node=4 reproducers/late_parameter.py broken
"""

from __future__ import annotations

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

WIDTH, BATCH, STEPS = 8, 4, 4  # steps in each of two stages


class Classifier(nn.Module):
    """A pretrained backbone and a new head."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return a prediction for each sample."""
        return self.head(torch.tanh(self.backbone(x)))


def build(*, frozen: bool) -> Classifier:
    """Build the same model on every rank, for the first stage with a frozen backbone."""
    torch.manual_seed(0)
    net = Classifier().double().to(own_device())
    net.backbone.requires_grad_(not frozen)
    return net


def train(
    model: nn.Module, stage: int, rank: int, ranks: int, only: nn.Module | None = None
) -> None:
    """Train what needs gradients, or `only` that, on this rank's part of one stage's batches."""
    trained = [p for p in (only or model).parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=0.05)
    for step in range(STEPS):
        generator = torch.Generator().manual_seed(10 * stage + step)
        x = torch.randn(
            dist.get_world_size() * BATCH, WIDTH, dtype=torch.float64, generator=generator
        )
        x = x.to(own_device())[rank::ranks]
        model.zero_grad()
        (model(x) - x.sum(dim=1, keepdim=True)).square().mean().backward()
        optimizer.step()


def check(trained: nn.Module) -> None:
    """Assert that the ranks agree, also with one process that trains in two stages."""
    assert same_on_all_ranks(trained.parameters()), "parameters differ between the ranks"
    alone = build(frozen=True)
    train(alone, 1, 0, 1)
    train(alone.requires_grad_(), 2, 0, 1)
    for parameter, expected in zip(trained.parameters(), alone.parameters(), strict=True):
        off = (parameter - expected).abs().max().item()
        assert off < 1e-12, f"off by {off} from a single process"


@broken()
def unfreeze_after_the_wrap() -> None:
    """Train the head first, then unfreeze the backbone of the wrapped model."""
    dist.init_process_group(backend())
    rank, world_size = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(build(frozen=True))
    train(model, 1, rank, world_size)
    for parameter in model.module.backbone.parameters():
        parameter.requires_grad = True  # <-- DDP305
    train(model, 2, rank, world_size)
    del model
    dist.destroy_process_group()


@documented(source="pytorch/pytorch#22049")
def search_for_unused_parameters() -> None:
    """Wrap it whole with find_unused_parameters=True, then freeze and unfreeze."""
    dist.init_process_group(backend())
    rank, world_size = dist.get_rank(), dist.get_world_size()
    net = build(frozen=False)
    model = DistributedDataParallel(net, find_unused_parameters=True)
    net.backbone.requires_grad_(False)
    train(model, 1, rank, world_size)
    net.backbone.requires_grad_(True)
    train(model, 2, rank, world_size)
    del model
    check(net)
    dist.destroy_process_group()


@fix()
def wrap_again() -> None:
    """Unfreeze the bare model, and wrap it again for the second stage."""
    with session(backend=backend()) as world:
        net = build(frozen=True)
        train(wrap(net, world), 1, world.rank, world.world_size)
        train(wrap(net.requires_grad_(), world), 2, world.rank, world.world_size)
        check(net)


@fix()
def leave_it_to_the_optimizer() -> None:
    """Wrap it whole; the optimizer of the first stage holds the head alone."""
    with session(backend=backend()) as world:
        net = build(frozen=False)
        model = wrap(net, world)
        train(model, 1, world.rank, world.world_size, only=net.head)
        train(model, 2, world.rank, world.world_size)
        check(net)


if __name__ == "__main__":
    main()
