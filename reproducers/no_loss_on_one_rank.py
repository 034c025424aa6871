"""DDP308 no-loss-on-one-rank: a rank with nothing to learn from returns a loss without a graph.

torchrun --nproc-per-node=4 reproducers/no_loss_on_one_rank.py broken
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
    own_device,
    same_on_all_ranks,
)
from ddpdoctor.stack.loss import global_count, global_mean
from ddpdoctor.stack.process_group import session, wrap

RESIDUES, WIDTH, LENGTH, STEPS, UNMASKED = 20, 8, 12, 4, 2
"""In step 2 the chain of rank 1 has no masked residue (at 15 % of 20 residues: 3.9 % of chains)."""

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


class Decoder(nn.Module):
    """Predicts the residues of a chain."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(RESIDUES + 1, WIDTH)
        self.mixer, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, RESIDUES)

    def forward(self, chain: Tensor) -> Tensor:
        """Return logits for each residue."""
        features = self.embedding(chain)
        return self.head(torch.tanh(self.mixer(features + features.mean(dim=0))))


def build() -> nn.Module:
    """Build the same model on every rank."""
    torch.manual_seed(0)
    return Decoder().double().to(own_device())


def chain_of(step: int, rank: int) -> tuple[Tensor, Tensor, Tensor]:
    """Make a rank's chain: as the model sees it, as it is, and which residues are masked."""
    torch.manual_seed(100 * step + rank)
    chain = torch.randint(RESIDUES, (LENGTH,))
    masked = torch.zeros(LENGTH, dtype=torch.bool)
    if not (step == UNMASKED and rank == 1):
        masked[: 2 + rank + step] = True
    seen = chain.masked_fill(masked, RESIDUES)
    return seen.to(own_device()), chain.to(own_device()), masked.to(own_device())


def train(model: nn.Module, loss_of: Loss) -> None:
    """Take a few steps on this rank's chains."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        seen, chain, masked = chain_of(step, dist.get_rank())
        loss = loss_of(model(seen), chain, masked)
        optimizer.zero_grad()
        loss.backward()  # <-- DDP308
        optimizer.step()


def train_wrapped(loss_of: Loss) -> nn.Module:
    """Train in DDP; the model comes back bare."""
    net = build()
    train(DistributedDataParallel(net), loss_of)
    return net


def check(trained: nn.Module) -> None:
    """Assert that the ranks agree, also with one process that has all chains."""
    assert same_on_all_ranks(trained.parameters()), "parameters differ between the ranks"
    alone = build()
    optimizer = torch.optim.SGD(alone.parameters(), lr=0.1)
    for step in range(STEPS):
        chains = [chain_of(step, rank) for rank in range(dist.get_world_size())]
        logits = torch.cat([alone(seen)[masked] for seen, _, masked in chains])
        wanted = torch.cat([chain[masked] for _, chain, masked in chains])
        optimizer.zero_grad()
        functional.cross_entropy(logits, wanted).backward()
        optimizer.step()
    for parameter, expected in zip(trained.parameters(), alone.parameters(), strict=True):
        off = (parameter - expected).abs().max().item()
        assert off < 1e-12, f"off by {off:.2g} from a single process"


@broken(ranks=(1,))
def constant_loss() -> None:
    """Return torch.tensor(0.0) where no residue is masked."""

    def masked_loss(logits: Tensor, chain: Tensor, masked: Tensor) -> Tensor:
        if not masked.any():
            return torch.tensor(0.0)  # <-- DDP308
        return functional.cross_entropy(logits[masked], chain[masked])

    dist.init_process_group(backend())
    train_wrapped(masked_loss)
    dist.destroy_process_group()


@documented(source="Lightning-AI/pytorch-lightning#12190")
def constant_that_requires_grad() -> None:
    """Return torch.tensor([0.0], requires_grad=True), which is right in one process."""

    def masked_loss(logits: Tensor, chain: Tensor, masked: Tensor) -> Tensor:
        if not masked.any():
            return torch.tensor([0.0], requires_grad=True, device=logits.device)
        return functional.cross_entropy(logits[masked], chain[masked])

    dist.init_process_group(backend())
    check(train_wrapped(masked_loss))
    dist.destroy_process_group()


@documented(source="ultralytics/ultralytics#26012")
def zero_times_the_output() -> None:
    """Return (output * 0).sum(): nobody waits, but an empty rank still counts as one."""

    def masked_loss(logits: Tensor, chain: Tensor, masked: Tensor) -> Tensor:
        if not masked.any():
            return (logits * 0).sum()
        return functional.cross_entropy(logits[masked], chain[masked])

    dist.init_process_group(backend())
    net = train_wrapped(masked_loss)
    assert same_on_all_ranks(net.parameters()), "parameters differ between the ranks"
    dist.destroy_process_group()


@fix()
def sum_and_global_count() -> None:
    """Add up the losses, an empty sum too, and divide by the count of all ranks."""
    with session(backend=backend()) as world:

        def masked_loss(logits: Tensor, chain: Tensor, masked: Tensor) -> Tensor:
            count = global_count(int(masked.sum()), world)
            summed = functional.cross_entropy(logits[masked], chain[masked], reduction="sum")
            return global_mean(summed, count, world)

        net = build()
        train(wrap(net, world), masked_loss)
        check(net)


if __name__ == "__main__":
    main()
