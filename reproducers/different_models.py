"""DDP310 different-models: each rank builds a model of its own size.

torchrun --nproc-per-node=4 reproducers/different_models.py broken
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ddpdoctor.reproducer import (
    backend,
    broken,
    fix,
    main,
    own_device,
    same_on_all_ranks,
)
from ddpdoctor.stack.process_group import session, wrap

FEATURES, SAMPLES, STEPS = 6, 24, 4


def shard(rank: int) -> tuple[Tensor, Tensor]:
    """Make a rank's part of the data; rank 0 alone has samples of the rarest class."""
    torch.manual_seed(rank)
    labels = torch.arange(SAMPLES) % (3 if rank == 0 else 2)
    features = torch.randn(SAMPLES, FEATURES, dtype=torch.float64)
    return features.to(own_device()), labels.to(own_device())


def build(classes: int) -> nn.Module:
    """Build a classifier, from the same seed on every rank."""
    torch.manual_seed(0)
    return nn.Linear(FEATURES, classes).double().to(own_device())


def train(model: nn.Module, features: Tensor, labels: Tensor) -> None:
    """Take a few steps on the whole of this data."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(features), labels).backward()
        optimizer.step()


def check(trained: nn.Module) -> None:
    """Assert that the ranks agree, also with one process that has all their data."""
    assert same_on_all_ranks(trained.parameters()), "parameters differ between the ranks"
    parts = [shard(rank) for rank in range(dist.get_world_size())]
    labels = torch.cat([labels for _, labels in parts])
    alone = build(int(labels.max()) + 1)
    train(alone, torch.cat([features for features, _ in parts]), labels)
    for parameter, expected in zip(trained.parameters(), alone.parameters(), strict=True):
        off = (parameter - expected).abs().max().item()
        assert off < 1e-12, f"off by {off} from a single process"


@broken(ranks="any")
def count_the_classes_of_the_shard() -> None:
    """Size the head by the labels that this rank happens to have."""
    dist.init_process_group(backend())
    features, labels = shard(dist.get_rank())
    net = build(len(labels.unique()))
    model = DistributedDataParallel(net)  # <-- DDP310
    train(model, features, labels)
    del model
    dist.destroy_process_group()


@fix()
def agree_on_the_classes() -> None:
    """Reduce the highest label over the ranks, then build."""
    with session(backend=backend()) as world:
        features, labels = shard(world.rank)
        highest = labels.max()
        dist.all_reduce(highest, op=dist.ReduceOp.MAX)
        net = build(int(highest) + 1)
        train(wrap(net, world), features, labels)
        check(net)


if __name__ == "__main__":
    main()
