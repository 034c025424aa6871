"""DDP405 local-stop-decision: the patience of each rank decides when it stops.

torchrun --nproc-per-node=4 reproducers/local_stop_decision.py broken
"""

from __future__ import annotations

from collections.abc import Callable

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
    own_device,
    same_on_all_ranks,
)
from ddpdoctor.stack.outcome import on_main
from ddpdoctor.stack.process_group import session

EPOCHS, PATIENCE = 12, 2


class Patience:
    """Says stop when the loss has not improved for some epochs."""

    def __init__(self) -> None:
        self.best, self.bad = float("inf"), 0

    def step(self, loss: float) -> bool:
        """Take the loss of an epoch."""
        self.bad = 0 if loss < self.best else self.bad + 1
        self.best = min(self.best, loss)
        return self.bad >= PATIENCE


def make_model() -> DistributedDataParallel:
    torch.manual_seed(0)
    return DistributedDataParallel(nn.Linear(4, 1).to(own_device()))


def train_one_epoch(model: nn.Module) -> None:
    features = torch.full((2, 4), 1.0 + dist.get_rank(), device=own_device())
    loss = model(features).square().mean()
    loss.backward()
    with torch.no_grad():
        for weight in model.parameters():
            assert weight.grad is not None
            weight.sub_(weight.grad, alpha=0.01)
            weight.grad = None


def validate(epoch: int) -> float:
    """Return the loss on this rank's part: that of rank r improves until epoch 1 + r."""
    return float(max(0, 1 + dist.get_rank() - epoch))


def train(must_stop: Callable[[float], bool]) -> None:
    """Train until it is time to stop; assert that it was the same time for all ranks."""
    model, last = make_model(), EPOCHS - 1
    for epoch in range(EPOCHS):
        train_one_epoch(model)
        if must_stop(validate(epoch)):
            last = epoch
            break  # <-- DDP405
    check(model, last)


def check(model: nn.Module, last: int) -> None:
    lasts = [0] * dist.get_world_size()
    dist.all_gather_object(lasts, last)
    assert len(set(lasts)) == 1, f"last epochs, by rank: {lasts}"
    assert last < EPOCHS - 1, "nobody stopped"
    assert same_on_all_ranks(model.parameters()), "parameters differ between the ranks"


@broken(ranks=(0,))
def patience_of_each_rank() -> None:
    """Each rank stops when its own loss does not improve."""
    dist.init_process_group(backend())
    model, patience = make_model(), Patience()
    for epoch in range(EPOCHS):
        train_one_epoch(model)
        if patience.step(validate(epoch)):
            break  # <-- DDP405
    del model  # the wrapper must not outlive the group
    dist.destroy_process_group()


@documented(source="talmolab/sleap-nn#437")
def barrier_after_validation() -> None:
    """A barrier after each validation, which all ranks reach."""
    dist.init_process_group(backend())
    patience = Patience()

    def wait_and_decide(loss: float) -> bool:
        dist.barrier()
        return patience.step(loss)

    train(wait_and_decide)
    dist.destroy_process_group()


@documented(source="Lightning-AI/pytorch-lightning#11242")
def join_the_others() -> None:
    """Train inside model.join(), as for uneven inputs."""
    dist.init_process_group(backend())
    model, patience, last = make_model(), Patience(), EPOCHS - 1
    with model.join():
        for epoch in range(EPOCHS):
            train_one_epoch(model)
            if patience.step(validate(epoch)):
                last = epoch
                break
    check(model, last)
    del model
    dist.destroy_process_group()


@documented(source="Lightning-AI/pytorch-lightning#15253")
def reduce_the_flag() -> None:
    """All-reduce a flag each epoch; all stop when any rank wants to."""
    dist.init_process_group(backend())
    patience = Patience()

    def anybody_stops(loss: float) -> bool:
        flag = torch.tensor(float(patience.step(loss)), device=own_device())
        dist.all_reduce(flag)
        return flag.item() > 0

    train(anybody_stops)
    dist.destroy_process_group()


@documented(source="ultralytics/yolov5#8345")
def broadcast_the_flag() -> None:
    """Rank 0 decides on its own loss and broadcasts a flag."""
    dist.init_process_group(backend())
    patience = Patience()

    def rank_0_stops(loss: float) -> bool:
        flag = [patience.step(loss) if dist.get_rank() == 0 else False]
        dist.broadcast_object_list(flag)
        return flag[0]

    train(rank_0_stops)
    dist.destroy_process_group()


@fix()
def patience_on_the_mean_loss() -> None:
    """Reduce the loss; equal numbers lead to equal decisions."""
    with session(backend=backend()) as world:
        patience = Patience()

        def mean_does_not_improve(loss: float) -> bool:
            mean = torch.tensor(loss, device=own_device())
            dist.all_reduce(mean)
            return patience.step(mean.item() / world.world_size)

        train(mean_does_not_improve)


@fix()
def rank_0_decides() -> None:
    """Rank 0 decides, by loss, clock or signal; the others are told."""
    with session(backend=backend()) as world:
        patience = Patience()
        train(lambda loss: on_main(world, lambda: patience.step(loss)))


if __name__ == "__main__":
    main()
