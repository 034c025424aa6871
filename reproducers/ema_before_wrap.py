"""DDP506 ema-before-wrap: the EMA is copied before DDP gives every rank the weights of rank 0.

torchrun --nproc-per-node=4 reproducers/ema_before_wrap.py broken
"""

from __future__ import annotations

import copy

import torch
import torch.distributed as dist
from torch import nn
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
from ddpdoctor.stack.ema import ExponentialMovingAverage
from ddpdoctor.stack.process_group import session, unwrap, wrap

SEED, DECAY, STEPS = 42, 0.9999, 20


def build(seed: int) -> nn.Module:
    """Seed, then build the model, as nearly every training script does."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)).to(own_device())


@torch.no_grad()
def update_ema(ema: nn.Module, model: nn.Module, decay: float = DECAY) -> None:
    """Move the average towards the weights of the bare model."""
    for average, weight in zip(ema.parameters(), model.parameters(), strict=True):
        average.lerp_(weight, 1 - decay)


def train(net: nn.Module, ema: nn.Module) -> None:
    """Take some steps on noise, which differs by rank as it should, and update the average."""
    torch.manual_seed(SEED + dist.get_rank())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        net(torch.randn(8, 8, device=own_device())).square().mean().backward()
        optimizer.step()
        update_ema(ema, unwrap(net))


def measure_spread(net: nn.Module, ema: nn.Module) -> float:
    """Return by how much the average differs between ranks; the model must not."""
    assert same_on_all_ranks(net.parameters()), "the model differs between the ranks"
    mine = torch.cat([average.flatten() for average in ema.parameters()])
    most, least = mine.clone(), mine.clone()
    dist.all_reduce(most, dist.ReduceOp.MAX)
    dist.all_reduce(least, dist.ReduceOp.MIN)
    return (most - least).max().item()


def check(net: nn.Module, ema: nn.Module) -> None:
    """Assert that model and average are equal on all ranks, to the bit."""
    spread = measure_spread(net, ema)
    assert spread == 0, f"the averages of the ranks differ by up to {spread:.3f}"


@broken()
def copied_before_the_wrap() -> None:
    """Seed with seed + rank, build, copy, then wrap."""
    dist.init_process_group(backend())
    model = build(SEED + dist.get_rank())
    ema = copy.deepcopy(model).requires_grad_(False)  # <-- DDP506
    net = DistributedDataParallel(model)
    train(net, ema)
    spread = measure_spread(net, ema)
    measured(f"the averages differ by up to {spread:.3f} after {STEPS} steps, the models by 0")
    del net  # the wrapper must not outlive the group
    dist.destroy_process_group()


def copy_then_wrap(seed: int) -> None:
    """Seed, build, copy the average, wrap, train: the order of many a script."""
    model = build(seed)
    ema = copy.deepcopy(model).requires_grad_(False)
    net = DistributedDataParallel(model)
    train(net, ema)
    check(net, ema)
    del net


@documented(source="timm, train.py: EMA before the DDP wrapper")
def before_the_wrap_as_timm_advises() -> None:
    """Create the EMA before the DDP wrapper; seed is seed + rank, as there."""
    dist.init_process_group(backend())
    copy_then_wrap(SEED + dist.get_rank())
    dist.destroy_process_group()


@documented(source="REPA-E, train_repae.py l.263")
def decay_zero_before_the_wrap() -> None:
    """Set the EMA to the "synced weights" by update_ema(decay=0), before prepare wraps."""
    dist.init_process_group(backend())
    model = build(SEED + dist.get_rank())
    ema = copy.deepcopy(model).requires_grad_(False)
    update_ema(ema, model, decay=0)
    net = DistributedDataParallel(model)
    train(net, ema)
    check(net, ema)
    del net
    dist.destroy_process_group()


@documented(source="002 fix 3: wait_for_everyone around prepare")
def barriers_around_the_wrap() -> None:
    """Barrier before and after the wrap; seed is seed + process_index, as there."""
    dist.init_process_group(backend())
    model = build(SEED + dist.get_rank())
    ema = copy.deepcopy(model).requires_grad_(False)
    dist.barrier()
    net = DistributedDataParallel(model)
    dist.barrier()
    train(net, ema)
    check(net, ema)
    del net
    dist.destroy_process_group()


@documented(source="facebookresearch/DiT, train.py")
def decay_zero_after_the_wrap() -> None:
    """Copy before the wrap, then update_ema(decay=0) from the wrapped module."""
    dist.init_process_group(backend())
    model = build(SEED + dist.get_rank())
    ema = copy.deepcopy(model).requires_grad_(False)
    net = DistributedDataParallel(model)
    update_ema(ema, net.module, decay=0)
    train(net, ema)
    check(net, ema)
    del net
    dist.destroy_process_group()


@documented(source="001 best practices: always seed")
def one_seed_for_all() -> None:
    """Seed all ranks alike; the EMA is still copied before the wrap."""
    dist.init_process_group(backend())
    copy_then_wrap(SEED)
    dist.destroy_process_group()


@fix()
def stack_average_after_the_wrap() -> None:
    """Wrap, then build the average of the stack from the wrapper."""
    with session(backend=backend()) as world:
        net = wrap(build(SEED + world.rank), world)
        average = ExponentialMovingAverage(net, DECAY)
        train(net, average.module)
        check(net, average.module)
        del net, average


if __name__ == "__main__":
    main()
