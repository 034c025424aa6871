"""DDP306 clip-before-sync: gradients are clipped before they are those of all ranks.

torchrun --nproc-per-node=4 reproducers/clip_before_sync.py broken
"""

from __future__ import annotations

from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_

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
from ddpdoctor.stack.trainer import sync_if, windows

WIDTH, BATCH, MICRO_BATCHES, ACCUMULATE, MAX_NORM = 8, 4, 9, 3, 0.2


def build() -> nn.Module:
    """Build the same model on every rank."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))
    return net.double().to(own_device())


def micro_batches(rank: int, ranks: int) -> list[Tensor]:
    """Return the micro-batches of an epoch, as far as they are this rank's."""
    generator = torch.Generator().manual_seed(1)
    shape = MICRO_BATCHES, dist.get_world_size() * BATCH, WIDTH
    everything = torch.randn(shape, generator=generator, dtype=torch.float64)
    return [each[rank::ranks].to(own_device()) for each in everything]


def loss_of(model: nn.Module, x: Tensor) -> Tensor:
    return (model(x) - x.sum(dim=1, keepdim=True)).square().mean()


def scaler() -> torch.amp.GradScaler:
    """Make a scaler whose factor is a power of two, so that it leaves no trace in the weights."""
    return torch.amp.GradScaler(own_device().type, init_scale=2.0**12)


def check(trained: nn.Module) -> None:
    """Assert that the ranks agree, also with one process that clips the gradients of a window."""
    assert same_on_all_ranks(trained.parameters()), "parameters differ between the ranks"
    alone = build()
    optimizer = torch.optim.SGD(alone.parameters(), lr=1.0)
    for window in windows(micro_batches(0, 1), ACCUMULATE):
        optimizer.zero_grad()
        loss_of(alone, torch.cat(window)).backward()
        clip_grad_norm_(alone.parameters(), MAX_NORM)
        optimizer.step()
    for parameter, expected in zip(trained.parameters(), alone.parameters(), strict=True):
        off = (parameter - expected).abs().max().item()
        assert off < 1e-9, f"off by {off:.2g} from a single process"


@broken()
def clip_in_every_micro_batch() -> None:
    """Clip after each backward, those under no_sync included."""
    dist.init_process_group(backend())
    model = DistributedDataParallel(build())
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for number, x in enumerate(micro_batches(dist.get_rank(), dist.get_world_size()), start=1):
        last = number % ACCUMULATE == 0
        with nullcontext() if last else model.no_sync():
            (loss_of(model, x) / ACCUMULATE).backward()
        clip_grad_norm_(model.parameters(), MAX_NORM)  # <-- DDP306
        if last:
            optimizer.step()
            optimizer.zero_grad()
    del model, optimizer
    dist.destroy_process_group()


@documented(source="pytorch/examples, distributed/minGPT-ddp, mingpt/trainer.py")
def clip_what_is_still_scaled() -> None:
    """Scale, clip, then let scaler.step() unscale."""
    dist.init_process_group(backend())
    net, scale = build(), scaler()
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    batches = micro_batches(dist.get_rank(), dist.get_world_size())
    for window in windows(batches, ACCUMULATE):
        optimizer.zero_grad()
        scale.scale(loss_of(model, torch.cat(window))).backward()
        clip_grad_norm_(model.parameters(), MAX_NORM)
        scale.step(optimizer)
        scale.update()
    del model, optimizer
    check(net)
    dist.destroy_process_group()


@documented(source="002 best practice 4")
def clip_if_gradients_are_synchronised() -> None:
    """`if accelerator.sync_gradients: clip`, said in plain DDP."""
    dist.init_process_group(backend())
    net = build()
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for number, x in enumerate(micro_batches(dist.get_rank(), dist.get_world_size()), start=1):
        sync_gradients = number % ACCUMULATE == 0
        with nullcontext() if sync_gradients else model.no_sync():
            (loss_of(model, x) / ACCUMULATE).backward()
        if sync_gradients:
            clip_grad_norm_(model.parameters(), MAX_NORM)
            optimizer.step()
            optimizer.zero_grad()
    del model, optimizer
    check(net)
    dist.destroy_process_group()


@fix()
def unscale_clip_step() -> None:
    """Unscale, clip and step once a window, as the stack's trainer does."""
    with session(backend=backend()) as world:
        net, scale = build(), scaler()
        model = wrap(net, world)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        for window in windows(micro_batches(world.rank, world.world_size), ACCUMULATE):
            optimizer.zero_grad()
            for number, x in enumerate(window, start=1):
                with sync_if(model, number == len(window)):
                    scale.scale(loss_of(model, x) / len(window)).backward()
            scale.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), MAX_NORM)
            scale.step(optimizer)
            scale.update()
        check(net)


if __name__ == "__main__":
    main()
