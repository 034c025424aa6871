"""DDP316 gathered-without-gradient: the features of the other ranks are gathered without a graph.

torchrun --nproc-per-node=4 reproducers/gathered_without_gradient.py broken
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.nn.functional import all_gather
from torch.nn.parallel import DistributedDataParallel

from ddpdoctor.reproducer import backend, broken, documented, fix, main, measured, own_device
from ddpdoctor.stack.process_group import session, wrap

BATCH, WIDTH = 4, 6

Gather = Callable[[Tensor], Tensor]


def build() -> nn.Module:
    """Build the same encoder on every rank."""
    torch.manual_seed(0)
    return nn.Linear(WIDTH, WIDTH).double().to(own_device())


def batch(rank: int) -> Tensor:
    """Make the batch of one rank."""
    generator = torch.Generator().manual_seed(100 + rank)
    return torch.randn(BATCH, WIDTH, dtype=torch.float64, generator=generator).to(own_device())


def contrast(mine: Tensor, everyones: Tensor, first: int = 0) -> Tensor:
    """Return the mean contrastive loss of these samples against all; theirs start at `first`."""
    logits = mine @ everyones.T
    return nn.functional.cross_entropy(
        logits, torch.arange(first, first + len(mine), device=mine.device)
    )


def own_place() -> int:
    """Return where this rank's samples stand among all."""
    return dist.get_rank() * BATCH


def check(net: nn.Module) -> None:
    """Assert that the averaged gradient is that of one process with all samples."""
    alone = build()
    features = alone(torch.cat([batch(rank) for rank in range(dist.get_world_size())]))
    torch.autograd.backward(contrast(features, features))
    taken = torch.cat([p.grad.flatten() for p in net.parameters() if p.grad is not None])
    wanted = torch.cat([p.grad.flatten() for p in alone.parameters() if p.grad is not None])
    length = (taken.norm() / wanted.norm()).item()
    cosine = nn.functional.cosine_similarity(taken, wanted, dim=0).item()
    told = f"the gradient has {length:.2f} of the length of one process's, cosine {cosine:.2f}"
    measured(told)
    assert torch.allclose(taken, wanted, rtol=0, atol=1e-12), told


def gather(features: Tensor) -> Tensor:
    """Gather the features of all ranks: values, and no graph."""
    parts = [torch.empty_like(features) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, features)  # <-- DDP316
    return torch.cat(parts)


@broken()
def gathered_negatives() -> None:
    """Contrast the own features with gathered ones."""
    dist.init_process_group(backend())
    net = build()
    model = DistributedDataParallel(net)
    features = model(batch(dist.get_rank()))
    everyones = gather(features)
    loss = contrast(features, everyones, own_place())
    loss.backward()
    del model
    check(net)
    dist.destroy_process_group()


def put_back(features: Tensor) -> Tensor:
    """Gather, and put the own features back, which have a graph."""
    parts = [torch.empty_like(features) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, features.detach())
    parts[dist.get_rank()] = features
    return torch.cat(parts)


def run(loss_of: Callable[[Tensor], Tensor]) -> None:
    """Take the gradient of this loss of the features, and compare it."""
    dist.init_process_group(backend())
    net = build()
    model = DistributedDataParallel(net)
    torch.autograd.backward(loss_of(model(batch(dist.get_rank()))))
    del model
    check(net)
    dist.destroy_process_group()


@documented(source="mlfoundations/open_clip, loss.py: own features put back, global loss")
def own_part_put_back() -> None:
    """Put the own part back; every rank computes the loss of all samples."""

    def loss_of(features: Tensor) -> Tensor:
        everyones = put_back(features)
        return contrast(everyones, everyones)

    run(loss_of)


@documented(source="mlfoundations/open_clip#616: local loss without gather-with-grad")
def own_part_put_back_local_loss() -> None:
    """Put the own part back; every rank computes the loss of its own samples."""
    run(lambda features: contrast(features, put_back(features), own_place()))


@documented(source="mlfoundations/open_clip#894: --local-loss --gather-with-grad")
def gather_with_gradient_local_loss() -> None:
    """Gather by torch.distributed.nn; every rank computes the loss of its own samples."""
    run(lambda features: contrast(features, torch.cat(all_gather(features)), own_place()))


@fix()
def gather_with_gradient() -> None:
    """Gather by torch.distributed.nn, whose backward sends each rank its part of the gradient."""
    with session(backend=backend()) as world:
        net = build()
        model = wrap(net, world)
        everyones = torch.cat(all_gather(model(batch(world.rank))))
        torch.autograd.backward(contrast(everyones, everyones))
        check(net)
        del model


@fix()
def own_part_put_back_and_scaled() -> None:
    """Put the own part back, and multiply the loss of all samples by the number of ranks."""
    with session(backend=backend()) as world:
        net = build()
        model = wrap(net, world)
        everyones = put_back(model(batch(world.rank)))
        torch.autograd.backward(contrast(everyones, everyones) * world.world_size)
        check(net)
        del model


if __name__ == "__main__":
    main()
