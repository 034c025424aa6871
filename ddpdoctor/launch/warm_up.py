"""What makes forks of the server cheap: done once in it, or by every rank for itself.

A rank that writes to a page gets its own copy of it, and Python writes wherever it looks: a first
call specialises bytecode and fills the caches of types. On two cores that was a quarter of what a
rank costs (three DDP steps on 4 ranks: 39 ms of CPU a rank, 29 with this).
"""

from __future__ import annotations

import ctypes
import io
import linecache
import re
import sys
from pathlib import Path
from typing import Any

_HUGE = 2 << 20
_AT_ONCE = 8 * _HUGE
_MADV_COLLAPSE = 25
_libc = ctypes.CDLL(None)


def warm_up() -> None:
    """Do what nearly every rank does, which seeds itself anew."""
    import torch
    from torch._dynamo import trace_rules

    trace_rules.clear_lru_cache()  # init_process_group does, and would copy 300 pages for it
    _read_sources()
    _know_whose_files()
    if torch.version.cuda is None and torch.version.hip is None:
        _train()  # with GPUs, optimizers ask for them, after which no fork could use one


def _read_sources() -> None:
    """Read the files that are on a rank's stack: `torch.manual_seed` formats it, three times."""
    ours = [name for name in sys.modules if name.startswith("ddpdoctor.")]
    for name in (
        *ours,
        "__main__",
        "runpy",
        "torch.random",
        "torch.cuda",
        "torch.xpu",
        "torch.mtia",
    ):
        if file := getattr(sys.modules.get(name), "__file__", None):
            linecache.getlines(file)


def _know_whose_files() -> None:
    """Have the watch know of every file here whether it is the user's: it asks by frame."""
    if (places := sys.modules.get("ddpdoctor.watch.places")) is not None:
        for module in list(sys.modules.values()):
            if file := getattr(module, "__file__", None):
                places.is_users_file(file)


def _train() -> None:
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    data = TensorDataset(torch.randn(8, 4), torch.randn(8, 1))
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        optimizer = kind(model.parameters(), lr=0.1)
        for epoch in range(3):
            sampler: DistributedSampler[Any] = DistributedSampler(data, num_replicas=2, rank=0)
            sampler.set_epoch(epoch)
            for inputs, targets in DataLoader(data, batch_size=2, sampler=sampler):
                optimizer.zero_grad()
                nn.functional.mse_loss(model(inputs), targets)
                for parameter in model.parameters():
                    # Not by backward: autograd has threads of its own, and a state of its own.
                    parameter.grad = torch.zeros_like(parameter)
                optimizer.step()
        optimizer.state_dict()
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    model.load_state_dict(torch.load(file, weights_only=True))


def use_huge_pages() -> None:
    """Gather this process's memory into huge pages, so that a fork copies fewer entries.

    A fork and its end take half as long. Where the kernel cannot (before Linux 6.1), nothing is
    changed.
    """
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        mapped = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ 0\s*(\[heap\])?$", line)
        if mapped is None:
            continue
        first = -(-int(mapped[1], 16) // _HUGE) * _HUGE
        last = int(mapped[2], 16) // _HUGE * _HUGE
        for begin in range(first, last, _AT_ONCE):
            # Not all in one call, which on a busy machine keeps signals waiting for seconds.
            size = min(_AT_ONCE, last - begin)
            _libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(size), _MADV_COLLAPSE)
