"""DDP311 marked-ready-twice: a reentrant checkpoint hands DDP the same gradient twice.

torchrun --nproc-per-node=4 reproducers/marked_ready_twice.py broken
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

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

WIDTH, BATCH, STEPS = 8, 4, 4


class Recurrent(nn.Module):
    """Applies one block twice, and keeps no activations of it if told so."""

    def __init__(self, reentrant: bool | None, *, passes: int = 2) -> None:
        super().__init__()
        self.embedding, self.block = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 1)
        self.reentrant, self.passes = reentrant, passes

    def step(self, x: Tensor) -> Tensor:
        """Return one pass of the block."""
        return x + torch.tanh(self.block(x))

    def forward(self, x: Tensor) -> Tensor:
        """Return a prediction for each sample."""
        x = self.embedding(x)
        for _ in range(self.passes):
            if self.reentrant is None:
                x = self.step(x)
            else:
                x = checkpoint(self.step, x, use_reentrant=self.reentrant)
        return self.head(x)


def build(reentrant: bool | None, *, passes: int = 2) -> nn.Module:
    """Build the same model on every rank."""
    torch.manual_seed(0)
    return Recurrent(reentrant, passes=passes).double().to(own_device())


def train(model: nn.Module, rank: int, ranks: int) -> None:
    """Train on this rank's part of each batch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(STEPS):
        generator = torch.Generator().manual_seed(step)
        x = torch.randn(
            dist.get_world_size() * BATCH, WIDTH, dtype=torch.float64, generator=generator
        )
        x = x.to(own_device())[rank::ranks]
        loss = (model(x) - x.sum(dim=1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()  # <-- DDP311
        optimizer.step()


def train_wrapped(
    net: nn.Module, ddp: Callable[[nn.Module], nn.Module] = DistributedDataParallel
) -> None:
    """Train in DDP, with options, and compare with one process that keeps its activations."""
    dist.init_process_group(backend())
    train(ddp(net), dist.get_rank(), dist.get_world_size())
    check(net)
    dist.destroy_process_group()


def check(trained: nn.Module) -> None:
    """Assert that the ranks agree, also with one process that keeps its activations."""
    assert same_on_all_ranks(trained.parameters()), "parameters differ between the ranks"
    passes = trained.passes
    assert isinstance(passes, int)
    alone = build(None, passes=passes)
    train(alone, 0, 1)
    for parameter, expected in zip(trained.parameters(), alone.parameters(), strict=True):
        off = (parameter - expected).abs().max().item()
        assert off < 1e-12, f"off by {off} from a single process"


@broken()
def checkpoint_a_block_twice() -> None:
    """Apply one block twice, each time under a reentrant checkpoint."""
    train_wrapped(build(True))


@documented(source="PyTorch's error message")
def static_graph() -> None:
    """Pass static_graph=True, as the error says."""
    train_wrapped(build(True), partial(DistributedDataParallel, static_graph=True))


@documented(source="pytorch/pytorch#106985")
def do_not_search_for_unused() -> None:
    """Leave find_unused_parameters off, and checkpoint each block once: no other change."""
    train_wrapped(
        build(True, passes=1), partial(DistributedDataParallel, find_unused_parameters=False)
    )


@documented(source="PyTorch documentation of torch.utils.checkpoint")
def not_reentrant() -> None:
    """Pass use_reentrant=False, also with find_unused_parameters=True."""
    train_wrapped(build(False), partial(DistributedDataParallel, find_unused_parameters=True))


@fix()
def not_reentrant_in_a_session() -> None:
    """Pass use_reentrant=False."""
    with session(backend=backend()) as world:
        net = build(False)
        train(wrap(net, world), world.rank, world.world_size)
        check(net)


if __name__ == "__main__":
    main()
