"""DDP115 lone-copies: ranks that never join a group are so many trainings, each on all the data.

torchrun --nproc-per-node=4 reproducers/lone_copies.py broken
"""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from ddpdoctor.reproducer import (
    backend,
    broken,
    documented,
    fix,
    main,
    own_device,
    same_on_all_ranks,
    shared_folder,
)
from ddpdoctor.stack.errors import LauncherError
from ddpdoctor.stack.process_group import session, wrap
from ddpdoctor.stack.samplers import TrainingSampler

SAMPLES = 48


def dataset() -> TensorDataset:
    generator = torch.Generator().manual_seed(0)
    return TensorDataset(torch.arange(SAMPLES), torch.randn(SAMPLES, 4, generator=generator))


def train(model: nn.Module, loader: DataLoader[tuple[Tensor, ...]]) -> list[int]:
    """Train for an epoch; return the samples that this rank has seen."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen: list[int] = []
    for numbers, x in loader:  # <-- DDP115
        seen += numbers.tolist()
        optimizer.zero_grad()
        model(x.to(own_device())).pow(2).mean().backward()
        optimizer.step()
    return seen


def check(model: nn.Module, seen: list[int]) -> None:
    """Assert that the ranks have shared the work, and hold one model."""
    assert dist.is_initialized(), (
        f"this rank has trained alone, on {len(seen)} of {SAMPLES} samples"
    )
    everywhere: list[list[int]] = [[]] * dist.get_world_size()
    dist.all_gather_object(everywhere, seen)
    together = sorted(number for each in everywhere for number in each)
    assert together == list(range(SAMPLES)), f"{len(together)} samples seen, of {SAMPLES}"
    assert same_on_all_ranks(model.parameters()), "the ranks have different models"


def build() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(4, 1).to(own_device())


@broken()
def never_join() -> None:
    """Ask whether there is a group, which nobody has made, and train without one."""
    data, model = dataset(), build()
    distributed = dist.is_initialized()
    sampler = DistributedSampler[int](data) if distributed else None
    if distributed:
        model = DistributedDataParallel(model)
    train(model, DataLoader(data, batch_size=4, sampler=sampler))


@documented(source="003 --ddp: print and save on rank 0 only")
def write_on_rank_0() -> None:
    """Save on rank 0 alone, taken from RANK: one file, but of a training that was alone."""
    data, model = dataset(), build()
    seen = train(model, DataLoader(data, batch_size=4))
    if os.environ["RANK"] == "0":
        torch.save(model.state_dict(), shared_folder() / "last.pt")
    check(model, seen)


@documented(source="PyTorch documentation of DistributedDataParallel")
def join_then_wrap() -> None:
    """Join, wrap the model, and deal the samples by a DistributedSampler."""
    dist.init_process_group(backend())
    data, model = dataset(), build()
    sampler = DistributedSampler[int](data, shuffle=False)
    ddp = DistributedDataParallel(model)
    seen = train(ddp, DataLoader(data, batch_size=4, sampler=sampler))
    check(model, seen)
    del ddp
    dist.destroy_process_group()


@fix()
def follow_the_launcher() -> None:
    """Open a session, which joins because RANK is set, and refuses to train alone where it is."""
    alone = session(backend=backend(), distributed=False)
    try:
        alone.__enter__()
    except LauncherError as error:
        print(error)
    else:
        raise AssertionError("a session of a lone process, in a job of several")
    with session(backend=backend()) as world:
        model = build()
        batches = TrainingSampler(
            SAMPLES, batch_size=4, num_replicas=world.world_size, rank=world.rank
        )
        seen = train(wrap(model, world), DataLoader(dataset(), batch_sampler=batches))
        check(model, seen)


if __name__ == "__main__":
    main()
