"""DDP317 static-graph-changed: `static_graph=True`, and then another part of the model is used.

torchrun --nproc-per-node=4 reproducers/static_graph_changed.py broken
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
from ddpdoctor.stack.process_group import session, wrap

STEPS, WARMUP = 6, 3
ENOUGH = 101  # steps after which DDP has written its logging data anew (it does every 100)

Schedule = Callable[[int], bool]


def late(step: int) -> bool:
    """Use the second head from the end of the warm-up on."""
    return step >= WARMUP


def early(step: int) -> bool:
    """Use the second head in the warm-up alone."""
    return step < WARMUP


class TwoHeads(nn.Module):
    """A model with an auxiliary head, which some steps leave out."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head, self.auxiliary = nn.Linear(6, 8), nn.Linear(8, 1), nn.Linear(8, 1)

    def forward(self, x: Tensor, use_auxiliary: bool) -> Tensor:
        """Return the loss."""
        hidden, target = torch.tanh(self.body(x)), x.sum(dim=1, keepdim=True)
        loss: Tensor = (self.head(hidden) - target).square().mean()
        if use_auxiliary:
            loss = loss + 0.3 * (self.auxiliary(hidden) - target).abs().mean()
        return loss


class Weighted(TwoHeads):
    """The same with both heads in every graph, the second one with weight 0 where it is off."""

    def forward(self, x: Tensor, use_auxiliary: bool) -> Tensor:
        """Return the loss."""
        hidden, target = torch.tanh(self.body(x)), x.sum(dim=1, keepdim=True)
        loss: Tensor = (self.head(hidden) - target).square().mean()
        weight = 0.3 if use_auxiliary else 0.0
        return loss + weight * (self.auxiliary(hidden) - target).abs().mean()


def build(kind: type[TwoHeads] = TwoHeads) -> TwoHeads:
    """Build the same model on every rank."""
    torch.manual_seed(0)
    return kind().double().to(own_device())


def batch(step: int, rank: int) -> Tensor:
    """Make the batch of one rank."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(4, 6, dtype=torch.float64, generator=generator).to(own_device())


def train(model: nn.Module, use_auxiliary: Schedule, steps: int = STEPS) -> None:
    """Train on this rank's batches."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        loss = model(batch(step, dist.get_rank()), use_auxiliary(step))
        optimizer.zero_grad()
        loss.backward()  # <-- DDP317
        optimizer.step()


def check(trained: nn.Module, use_auxiliary: Schedule) -> None:
    """Assert that the ranks agree to the bit, and with one process that sees all their batches."""
    assert same_on_all_ranks(trained.parameters()), "parameters differ between the ranks"
    alone, ranks = build(), dist.get_world_size()
    optimizer = torch.optim.SGD(alone.parameters(), lr=0.05)
    for step in range(STEPS):
        optimizer.zero_grad()
        for rank in range(ranks):
            torch.autograd.backward(alone(batch(step, rank), use_auxiliary(step)) / ranks)
        optimizer.step()
    for parameter, expected in zip(trained.parameters(), alone.parameters(), strict=True):
        off = (parameter - expected).abs().max().item()
        assert off < 1e-12, f"off by {off} from a single process"


@broken()
def second_head_after_warmup() -> None:
    """Pass static_graph=True, and use the auxiliary head from step 3 on."""
    dist.init_process_group(backend())
    train(DistributedDataParallel(build(), static_graph=True), late)
    dist.destroy_process_group()


@documented(source="huggingface/transformers#45519: cheaper than find_unused_parameters")
def second_head_in_warmup() -> None:
    """Pass static_graph=True, and use the auxiliary head until step 3."""
    dist.init_process_group(backend())
    net = build()
    train(DistributedDataParallel(net, static_graph=True), early)
    check(net, early)
    dist.destroy_process_group()


@documented(source="PyTorch documentation of DistributedDataParallel, static_graph")
def ask_the_logging_data() -> None:
    """Train once without, then ask _get_ddp_logging_data() for can_set_static_graph."""
    dist.init_process_group(backend())
    model = DistributedDataParallel(build())
    train(model, lambda step: True, ENOUGH)
    answer = model._get_ddp_logging_data().get("can_set_static_graph")
    del model
    assert answer is not None, "the graph was static, and there is no can_set_static_graph"
    assert answer, f"the graph was static, and can_set_static_graph is {answer}"
    dist.destroy_process_group()


@documented(source="msed-Ebrahimi/ARoFace#5: take _set_static_graph() out")
def without_static_graph() -> None:
    """Leave static_graph off, and change nothing else."""
    dist.init_process_group(backend())
    net = build()
    train(DistributedDataParallel(net), late)
    check(net, late)
    dist.destroy_process_group()


@fix()
def find_unused_parameters() -> None:
    """Let DDP look for unused parameters, in both directions."""
    for use_auxiliary in (late, early):
        with session(backend=backend()) as world:
            net = build()
            train(wrap(net, world, find_unused_parameters=True), use_auxiliary)
            check(net, use_auxiliary)


@fix()
def both_heads_in_every_graph() -> None:
    """Keep the graph the same: weight 0 for the head that is off."""
    for use_auxiliary in (late, early):
        with session(backend=backend()) as world:
            net = build(Weighted)
            train(wrap(net, world), use_auxiliary)
            check(net, use_auxiliary)


if __name__ == "__main__":
    main()
