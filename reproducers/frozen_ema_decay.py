"""DDP507 frozen-ema-decay: a closure holds the EMA's decay, and setting `ema.decay` does nothing.

torchrun --nproc-per-node=4 reproducers/frozen_ema_decay.py broken
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

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

DECAY, WARMUPS, STAGE_1_STEPS = 0.9999, 2, 30
RESTART_DECAY, DECAY_STEP = 0.5, 0.0001  # stage 2 restarts with another decay, and lowers it

Decay = Callable[[int], float]  # of the number of updates


class Average(Protocol):
    """What the solver knows of an EMA."""

    decay: float
    module: nn.Module

    def update(self, model: nn.Module) -> None:
        """Move towards the weights of the model."""


class ModelEMA:
    """The EMA of the RT-DETR and DEIM lineage, whose decay rises with the updates."""

    def __init__(self, model: nn.Module, decay: float = DECAY, warmups: int = WARMUPS) -> None:
        self.module = copy.deepcopy(unwrap(model)).eval().requires_grad_(False)
        self.decay = decay
        self.updates = 0
        self.decay_fn: Decay = lambda n: decay * (1 - math.exp(-n / warmups))  # <-- DDP507

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Move towards the weights of the model."""
        self.updates += 1
        decay = self.decay_fn(self.updates)
        source = unwrap(model)
        for average, weight in zip(self.module.parameters(), source.parameters(), strict=True):
            average.lerp_(weight, 1 - decay)


def flat(module: nn.Module) -> Tensor:
    return torch.cat([each.detach().flatten().double() for each in module.parameters()])


def step(net: nn.Module, average: Average) -> float:
    """Take a step; return how much of the old average is left in the new one, its true decay."""
    before = flat(average.module)
    net(torch.randn(8, 8, device=own_device())).square().mean().backward()
    torch.optim.SGD(net.parameters(), lr=0.1).step()
    net.zero_grad()
    average.update(net)
    weights, after = flat(net), flat(average.module)
    return float((after - weights) @ (before - weights) / (before - weights).square().sum())


def train(make: Callable[[nn.Module], Average]) -> None:
    """Train stage 1, change the decay as at the switch to stage 2, and look what a step does."""
    with session(backend=backend()) as world:
        torch.manual_seed(0)
        net = wrap(nn.Linear(8, 4), world)
        average = make(net)
        torch.manual_seed(world.rank)
        for _ in range(STAGE_1_STEPS):
            step(net, average)
        average.decay = RESTART_DECAY
        average.decay -= DECAY_STEP
        shown = step(net, average)
        measured(f"ema.decay is {average.decay:.4f}, the average moves with {shown:.4f}")
        assert same_on_all_ranks(average.module.parameters()), "the average differs between ranks"
        assert abs(shown - average.decay) < 1e-4, "the average does not move with ema.decay"
        del net, average  # the wrapper must not outlive the group


@broken()
def decay_in_a_closure() -> None:
    """Set ema.decay, as 004 fix 2 does; decay_fn holds the first value."""
    train(ModelEMA)


class RestartedEMA(ModelEMA):
    """Prints the new decay at the refresh."""

    def update(self, model: nn.Module) -> None:
        """Move towards the weights of the model."""
        if self.updates == STAGE_1_STEPS and dist.get_rank() == 0:
            print(f"Refresh EMA with decay {self.decay}")
        super().update(model)


@documented(source="004 fix 2: the line it prints")
def decay_as_printed() -> None:
    """Set and lower ema.decay at the refresh, and trust the printed number."""
    train(RestartedEMA)


class TimmEMA(ModelEMA):
    """Reads its decay in a lambda, too, but from self."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        self.decay_fn = lambda n: self.decay


@documented(source="timm, ModelEmaV2")
def lambda_that_reads_self() -> None:
    """Let the lambda read self.decay."""
    train(TimmEMA)


class TorchEMA:
    """PyTorch's own average, whose function holds the decay: a new decay needs a new function."""

    def __init__(self, model: nn.Module) -> None:
        self.averaged = AveragedModel(unwrap(model))
        self.decay = DECAY
        self.module = self.averaged.module

    @property
    def decay(self) -> float:
        """How much of the past an update keeps."""
        return self._decay

    @decay.setter
    def decay(self, decay: float) -> None:
        self._decay = decay
        self.averaged.multi_avg_fn = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]

    def update(self, model: nn.Module) -> None:
        """Move towards the weights of the model."""
        self.averaged.update_parameters(unwrap(model))


@documented(source="PyTorch documentation of torch.optim.swa_utils")
def new_function_for_a_new_decay() -> None:
    """AveragedModel with get_ema_multi_avg_fn(decay), made anew for the new decay."""
    train(TorchEMA)


@fix()
def stack_average() -> None:
    """The stack's average reads its decay at each update."""
    train(lambda net: ExponentialMovingAverage(net, DECAY))


if __name__ == "__main__":
    main()
