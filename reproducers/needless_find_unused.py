"""DDP302 needless-find-unused: the graph is searched at every step for what is never there.

torchrun --nproc-per-node=4 reproducers/needless_find_unused.py broken
"""

from __future__ import annotations

import time
from itertools import pairwise
from statistics import quantiles

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
    measured,
    own_device,
    same_on_all_ranks,
)
from ddpdoctor.stack.process_group import session, wrap

PARAMETERS, WIDTH, STEPS, PAIRS = 100, 4, 8, 15


class Ensemble(nn.Module):
    """The mean of many small predictors: many parameters, quickly computed, all of them used."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.members = nn.ParameterList(torch.randn(WIDTH) for _ in range(PARAMETERS))

    def forward(self, x: Tensor) -> Tensor:
        """Return a prediction for each sample."""
        return torch.tanh(x @ torch.stack(list(self.members), dim=1)).mean(dim=1)


def build() -> nn.Module:
    """Build the same model on every rank."""
    return Ensemble().double().to(own_device())


def batch(step: int) -> Tensor:
    """Make this rank's batch for one step."""
    generator = torch.Generator().manual_seed(100 * step + dist.get_rank())
    return torch.randn(4, WIDTH, dtype=torch.float64, generator=generator).to(own_device())


def train(model: nn.Module) -> None:
    """Take a few steps, in each of which every parameter takes part."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(STEPS):
        optimizer.zero_grad()
        model(batch(step)).square().mean().backward()
        optimizer.step()


def forward_time(model: nn.Module) -> float:
    """Return the CPU time of one forward: that is where DDP searches."""
    x = batch(0)
    started = time.thread_time()
    output = model(x)
    spent = time.thread_time() - started
    output.sum().backward()
    return spent


def compare(model: nn.Module, way: str) -> None:
    """Tell how much longer a forward takes this way than with plain DDP, in turns."""
    plain = DistributedDataParallel(build())
    times = [forward_time(each) for _ in range(PAIRS) for each in (model, plain)]
    ratios = [mine / its for mine, its in list(pairwise(times))[::2]]
    low, middle, high = quantiles(ratios[2:])
    measured(
        f"with {way} a forward takes {middle:.2f} times the CPU time that it takes without; of "
        f"{PAIRS - 2} pairs half lie between {low:.2f} and {high:.2f}"
    )


def check(trained: nn.Module) -> None:
    """Assert that it is the model that plain DDP trains, on every rank."""
    assert same_on_all_ranks(trained.parameters()), "parameters differ between the ranks"
    plain = build()
    train(DistributedDataParallel(plain))
    for parameter, expected in zip(trained.parameters(), plain.parameters(), strict=True):
        off = (parameter - expected).abs().max().item()
        assert off < 1e-12, f"off by {off} from plain DDP"


@broken()
def search_to_be_safe() -> None:
    """Pass find_unused_parameters=True although every parameter is used."""
    dist.init_process_group(backend())
    net = build()
    model = DistributedDataParallel(net, find_unused_parameters=True)  # <-- DDP302
    train(model)
    check(net)
    compare(model, "find_unused_parameters")
    del model
    dist.destroy_process_group()


@documented(source="PyTorch documentation of DistributedDataParallel, static_graph")
def static_graph() -> None:
    """Pass static_graph=True: the graph is searched once."""
    dist.init_process_group(backend())
    net = build()
    model = DistributedDataParallel(net, static_graph=True)
    train(model)
    check(net)
    compare(model, "static_graph")
    del model
    dist.destroy_process_group()


@fix()
def leave_it_off() -> None:
    """Wrap the model without the flag."""
    with session(backend=backend()) as world:
        net = build()
        train(wrap(net, world))
        check(net)


if __name__ == "__main__":
    main()
