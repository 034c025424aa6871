"""DDP309 mean-of-means: ranks with few samples weigh as much as ranks with many.

torchrun --nproc-per-node=4 reproducers/mean_of_means.py broken
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional
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
from ddpdoctor.stack.loss import global_count, global_mean
from ddpdoctor.stack.process_group import session, wrap

RESIDUES, WIDTH, LENGTH = 20, 8, 12
COUNTS = (3, 5, 8, 12)
"""How many residues of a chain are masked, by rank (modulo their number)."""

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


def build() -> nn.Module:
    """Build the same model on every rank."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Embedding(RESIDUES + 1, WIDTH), nn.Tanh(), nn.Linear(WIDTH, RESIDUES))
    return net.double().to(own_device())


def chain_of(rank: int) -> tuple[Tensor, Tensor, Tensor]:
    """Make a rank's chain: as the model sees it, as it is, and which residues are masked."""
    torch.manual_seed(rank)
    chain = torch.randint(RESIDUES, (LENGTH,))
    masked = torch.arange(LENGTH) < COUNTS[rank % len(COUNTS)]
    seen = torch.where(torch.rand(LENGTH) < 0.5, chain, RESIDUES)
    return seen.to(own_device()), chain.to(own_device()), masked.to(own_device())


def check(model: nn.Module) -> None:
    """Assert that the gradient is that of one process with the chains of all ranks."""
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert same_on_all_ranks(gradients), "gradients differ between the ranks"
    alone = build()
    chains = [chain_of(rank) for rank in range(dist.get_world_size())]
    logits = torch.cat([alone(seen)[masked] for seen, _, masked in chains])
    wanted = torch.cat([chain[masked] for _, chain, masked in chains])
    functional.cross_entropy(logits, wanted).backward()
    expected = torch.cat([p.grad.flatten() for p in alone.parameters() if p.grad is not None])
    off = torch.cat([gradient.flatten() for gradient in gradients]) - expected
    error = (off.norm() / expected.norm()).item()
    measured(f"the gradient is off by {error:.0%} of its length")
    assert error < 1e-12, f"the gradient is off by {error:.0%} from that of a single process"


def backward(loss_of: Loss) -> None:
    """Make one backward pass in DDP, and look at the gradient."""
    dist.init_process_group(backend())
    net = build()
    model = DistributedDataParallel(net)
    seen, chain, masked = chain_of(dist.get_rank())
    loss_of(model(seen), chain, masked).backward()
    del model
    check(net)
    dist.destroy_process_group()


@broken()
def mean_over_the_masked() -> None:
    """Divide by what this rank has masked."""
    dist.init_process_group(backend())
    net = build()
    model = DistributedDataParallel(net)
    seen, chain, masked = chain_of(dist.get_rank())
    losses = functional.cross_entropy(model(seen), chain, reduction="none")
    loss = (losses * masked).sum() / masked.sum()  # <-- DDP309
    loss.backward()
    del model
    check(net)
    dist.destroy_process_group()


@documented(source="003 batch size and learning rate")
def equal_batches_are_one_big_batch() -> None:
    """Total batch = batch per GPU x GPUs: chains are equally many, their masks are not."""

    def mean(logits: Tensor, chain: Tensor, masked: Tensor) -> Tensor:
        return functional.cross_entropy(logits[masked], chain[masked])

    backward(mean)


@documented(source="verl-project/verl-SpeCo#29, before the repair")
def global_count_alone() -> None:
    """Sum / global count, which DDP then divides by the ranks once more."""

    def mean(logits: Tensor, chain: Tensor, masked: Tensor) -> Tensor:
        count = masked.sum()
        dist.all_reduce(count)
        return functional.cross_entropy(logits[masked], chain[masked], reduction="sum") / count

    backward(mean)


@documented(source="verl-project/verl-SpeCo#29")
def ranks_times_sum_by_global_count() -> None:
    """Multiply by the ranks, which DDP divides by, and divide by the global count."""

    def mean(logits: Tensor, chain: Tensor, masked: Tensor) -> Tensor:
        count = masked.sum()
        dist.all_reduce(count)
        summed = functional.cross_entropy(logits[masked], chain[masked], reduction="sum")
        return summed * dist.get_world_size() / count

    backward(mean)


@fix()
def global_mean_of_the_stack() -> None:
    """Let the stack count over the ranks, and scale the sum."""
    with session(backend=backend()) as world:
        net = build()
        model = wrap(net, world)
        seen, chain, masked = chain_of(world.rank)
        logits = model(seen)
        summed = functional.cross_entropy(logits[masked], chain[masked], reduction="sum")
        count = global_count(int(masked.sum()), world)
        global_mean(summed, count, world).backward()
        check(net)


if __name__ == "__main__":
    main()
