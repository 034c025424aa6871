"""DDP412 long-rank0-work: what rank 0 does alone outlasts the timeout of those who wait for it.

torchrun --nproc-per-node=4 reproducers/long_rank0_work.py broken

The timeout is scaled down, to 1 s, and the work with it; everything else is as it is in earnest.
"""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from ddpdoctor.reproducer import (
    backend,
    broken,
    documented,
    fix,
    main,
    own_device,
    shared_folder,
)
from ddpdoctor.stack.outcome import on_main
from ddpdoctor.stack.process_group import session

SHORT, LONG = timedelta(seconds=1), timedelta(minutes=1)
WORK = 1.6  # seconds that the preprocessing takes
SAMPLES = 32


def preprocess() -> Path:
    """Tokenise the whole data set into a cache."""
    cache = shared_folder() / "cache.pt"
    time.sleep(WORK)  # <-- DDP412
    torch.save(torch.arange(SAMPLES), cache)
    return cache


def check(samples: Tensor) -> None:
    """Assert that every rank has read the whole cache."""
    total = samples.sum().to(own_device())
    dist.all_reduce(total)
    expected = dist.get_world_size() * SAMPLES * (SAMPLES - 1) // 2
    assert total.item() == expected, f"the ranks have read {total.item()}, not {expected}"


def main_process_first() -> None:
    """Let rank 0 build the cache and the others wait for it."""
    if dist.get_rank() == 0:
        preprocess()  # <-- DDP412
    dist.barrier()
    check(torch.load(shared_folder() / "cache.pt"))


@broken(ranks=(0,))
def preprocess_on_rank_0() -> None:
    """Rank 0 preprocesses for longer than the group's timeout; the others wait in a barrier."""
    dist.init_process_group(backend(), timeout=SHORT)
    main_process_first()
    dist.destroy_process_group()


@documented(source="004 further measures 1; 001 troubleshooting (1800)")
def timeout_by_a_variable() -> None:
    """Set NCCL_TIMEOUT to 3600 at the beginning of the training script."""
    os.environ["NCCL_TIMEOUT"] = "3600"
    dist.init_process_group(backend(), timeout=SHORT)
    main_process_first()
    dist.destroy_process_group()


@documented(source="huggingface/trl#1519: a higher ddp_timeout")
def longer_timeout() -> None:
    """Give the group a timeout that outlasts the work."""
    dist.init_process_group(backend(), timeout=LONG)
    main_process_first()
    dist.destroy_process_group()


@documented(source="Lightning-AI/pytorch-lightning#19448: a barrier without a timeout")
def group_for_the_long_wait() -> None:
    """Wait for the work in a gloo group of its own timeout; training keeps the short one."""
    dist.init_process_group(backend(), timeout=SHORT)
    patient = dist.new_group(backend="gloo", timeout=LONG)
    if dist.get_rank() == 0:
        preprocess()
    dist.barrier(group=patient)
    check(torch.load(shared_folder() / "cache.pt"))
    dist.destroy_process_group()


@fix()
def session_with_a_timeout() -> None:
    """Give the session the timeout, and let on_main share cache and outcome."""
    with session(backend=backend(), timeout=LONG) as world:
        check(torch.load(on_main(world, preprocess)))


if __name__ == "__main__":
    main()
