"""DDP307 rank-local-skip: one rank leaves a step out, and from then on answers the wrong calls.

torchrun --nproc-per-node=4 reproducers/rank_local_skip.py broken
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
from ddpdoctor.stack.loss import global_count, global_mean
from ddpdoctor.stack.process_group import session, wrap

WIDTH, BATCH, STEPS, DAMAGED = 8, 4, 8, 3  # rank 1 has a damaged sample in step 3


def build() -> nn.Module:
    """Build the same model on every rank."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))
    return net.double().to(own_device())


def batch(step: int, rank: int) -> Tensor:
    """Make a rank's batch; one sample of one of them is not a number."""
    generator = torch.Generator().manual_seed(100 * step + rank)
    x = torch.randn(BATCH, WIDTH, dtype=torch.float64, generator=generator)
    if step == DAMAGED and rank == 1:
        x[0, 0] = torch.nan
    return x.to(own_device())


def errors(model: nn.Module, x: Tensor) -> Tensor:
    """Return the squared error of each sample."""
    return (model(x) - x.sum(dim=1, keepdim=True)).square()


def train(model: nn.Module, skips: Callable[[Tensor], bool]) -> None:
    """Train on this rank's batches, without those that `skips` says to leave out."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for step in range(STEPS):
        loss = errors(model, batch(step, dist.get_rank())).mean()
        if skips(loss.detach()):
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def check(trained: nn.Module, *, whole_step: bool) -> None:
    """Assert that the ranks agree, also with one process.

    That one leaves out the step with the damaged sample, or the sample alone.
    """
    assert same_on_all_ranks(trained.parameters()), "parameters differ between the ranks"
    assert all(p.isfinite().all() for p in trained.parameters()), "every rank has caught the NaN"
    alone = build()
    optimizer = torch.optim.SGD(alone.parameters(), lr=0.02)
    for step in range(STEPS):
        x = torch.cat([batch(step, rank) for rank in range(dist.get_world_size())])
        good = x.isfinite().all(dim=1)
        if whole_step and not good.all():
            continue
        optimizer.zero_grad()
        errors(alone, x[good]).mean().backward()
        optimizer.step()
    for parameter, expected in zip(trained.parameters(), alone.parameters(), strict=True):
        off = (parameter - expected).abs().max().item()
        assert off < 1e-12, f"off by {off} from a single process"


@broken(ranks=(1,))
def skip_the_batch_on_one_rank() -> None:
    """Go on to the next batch where the loss is not a number."""
    dist.init_process_group(backend())
    model = DistributedDataParallel(build())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for step in range(STEPS):
        x = batch(step, dist.get_rank())
        loss = nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True))
        if not torch.isfinite(loss):
            continue  # <-- DDP307
        optimizer.zero_grad()
        loss.backward()  # <-- DDP307
        optimizer.step()
    del model, optimizer
    dist.destroy_process_group()


@documented(source="ecmwf/WeatherGenerator#2718, before the repair")
def decide_on_rank_0() -> None:
    """Rank 0 looks at its loss, and broadcasts whether to skip."""

    def skips(loss: Tensor) -> bool:
        skip = (~loss.isfinite()).to(torch.uint8)
        dist.broadcast(skip, src=0)
        return bool(skip)

    dist.init_process_group(backend())
    net = build()
    train(DistributedDataParallel(net), skips)
    check(net, whole_step=True)
    dist.destroy_process_group()


@documented(source="ecmwf/WeatherGenerator#2718")
def skip_together() -> None:
    """All-reduce the maximum of the flags: any rank's NaN skips the batch on all."""

    def skips(loss: Tensor) -> bool:
        skip = (~loss.isfinite()).to(torch.uint8)
        dist.all_reduce(skip, op=dist.ReduceOp.MAX)
        return bool(skip)

    dist.init_process_group(backend())
    net = build()
    train(DistributedDataParallel(net), skips)
    check(net, whole_step=True)
    dist.destroy_process_group()


@fix()
def leave_out_the_sample() -> None:
    """Drop the damaged sample before the forward, and divide by what all ranks have left."""
    with session(backend=backend()) as world:
        net = build()
        model = wrap(net, world)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
        for step in range(STEPS):
            x = batch(step, world.rank)
            x = x[x.isfinite().all(dim=1)]
            count = global_count(len(x), world)
            optimizer.zero_grad()
            global_mean(errors(model, x).sum(), count, world).backward()
            optimizer.step()
        check(net, whole_step=False)


if __name__ == "__main__":
    main()
