"""DDP602 empty-cache-as-cure: caches are emptied, and what somebody still holds stays.

torchrun --nproc-per-node=4 reproducers/empty_cache_as_cure.py broken
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path

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

WIDTH, BATCH, STEPS, WARM_UP = 256, 1024, 12, 4  # an output is a tensor of 1 MB
MEGABYTE = 2**20


def build() -> nn.Module:
    """Build the same model on every rank."""
    torch.manual_seed(0)
    return nn.Linear(WIDTH, WIDTH).to(own_device())


def batch(step: int) -> Tensor:
    """Make this rank's batch for one step."""
    generator = torch.Generator().manual_seed(100 * step + dist.get_rank())
    return torch.randn(BATCH, WIDTH, generator=generator).to(own_device())


def live() -> float:
    """Return the size of all tensors that Python can still reach, in MB."""
    tensors = [each for each in gc.get_objects() if type(each) is Tensor]
    storages = {each.untyped_storage().data_ptr(): each.untyped_storage() for each in tensors}
    return sum(each.nbytes() for each in storages.values()) / MEGABYTE


def resident() -> float:
    """Return what the system counts as this process's memory, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MEGABYTE


def check(before: tuple[float, float]) -> None:
    """Assert that memory stays where it was after the first steps."""
    steps = STEPS - WARM_UP
    growth, whole = (live() - before[0]) / steps, (resident() - before[1]) / steps
    measured(f"live tensors grow by {growth:.2f} MB a step, resident memory by {whole:.1f} MB")
    assert growth < 0.01, f"live tensors grow by {growth:.2f} MB a step"


def train(model: nn.Module, keep: Callable[[Tensor], Tensor | float], every: int = 0) -> None:
    """Train, keep something of each step, and clean up every so many steps."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    history, before = [], (0.0, 0.0)
    for step in range(STEPS):
        optimizer.zero_grad()
        output = model(batch(step))
        output.square().mean().backward()
        optimizer.step()
        history.append(keep(output))
        if every and step % every == 0:
            gc.collect()
            torch.cuda.empty_cache()
        if step == WARM_UP - 1:
            before = live(), resident()
    check(before)
    assert len(history) == STEPS, "a step is missing"
    assert same_on_all_ranks(model.parameters()), "parameters differ between the ranks"


@broken()
def empty_the_cache_at_every_step() -> None:
    """Keep each step's output for a metric, and call empty_cache() against the growth."""
    dist.init_process_group(backend())
    model = DistributedDataParallel(build())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    outputs, before = [], (0.0, 0.0)
    for step in range(STEPS):
        optimizer.zero_grad()
        output = model(batch(step))
        output.square().mean().backward()
        optimizer.step()
        outputs.append(output)
        torch.cuda.empty_cache()  # <-- DDP602
        if step == WARM_UP - 1:
            before = live(), resident()
    check(before)
    del model, optimizer, outputs, output
    dist.destroy_process_group()


@documented(source="002 problem 5 and best practice 2")
def collect_and_empty_regularly() -> None:
    """gc.collect() and torch.cuda.empty_cache() at every other step."""
    dist.init_process_group(backend())
    train(DistributedDataParallel(build()), lambda output: output, every=2)
    dist.destroy_process_group()


@documented(source="axolotl-ai-cloud/axolotl#1858")
def empty_and_collect_in_each_step() -> None:
    """gc.collect() and torch.cuda.empty_cache() in every training step."""
    dist.init_process_group(backend())
    train(DistributedDataParallel(build()), lambda output: output, every=1)
    dist.destroy_process_group()


@fix()
def keep_a_number() -> None:
    """Keep what the metric needs, a number, and clean nothing."""
    with session(backend=backend()) as world:
        train(wrap(build(), world), lambda output: output.mean().item())


if __name__ == "__main__":
    main()
