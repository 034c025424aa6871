"""Which GPUs there are, and a lease on some of them."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
_COUNT = "import torch; print(torch.cuda.device_count())"


class NoLease(Exception):
    """The GPUs stayed in use; the message says for how long they were waited for."""


@functools.cache
def visible() -> tuple[str, ...]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES would name them."""
    if not any(Path(driver).exists() for driver in _DRIVERS):
        return ()
    # In a process of its own, for counting them here would make it unsafe to fork from here.
    counted = subprocess.run(
        [sys.executable, "-c", _COUNT], capture_output=True, text=True, check=False
    )
    count = int(counted.stdout) if counted.returncode == 0 else 0
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = named.split(",") if named else map(str, range(count))
    return tuple(name.strip() for name, _ in zip(names, range(count), strict=False))


@contextlib.contextmanager
def lease(number: int, patience: float = 600.0) -> Iterator[tuple[str, ...]]:
    """Hold `number` of the visible GPUs against everyone else who leases them on this host.

    The kernel gives them back if this process dies. Raises NoLease after `patience` seconds.
    """
    folder = Path(tempfile.gettempdir()) / f"ddpdoctor-gpus-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    deadline = time.monotonic() + patience
    while True:
        with contextlib.ExitStack() as locks:
            held: list[str] = []
            for name in visible():
                file = locks.enter_context((folder / name.replace("/", "_")).open("w"))
                if len(held) < number and _lock(file):
                    held.append(name)
            if len(held) == number:
                yield tuple(held)
                return
        if time.monotonic() > deadline:
            raise NoLease(f"{number} GPUs were in use for {patience:g} s by other tests")
        time.sleep(0.1)


def _lock(file: IO[str]) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
