"""What the ranks of these tests do."""

from __future__ import annotations

import atexit
import ctypes
import logging.handlers
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def rank() -> int:
    return int(os.environ["RANK"])


def tell(**arguments: object) -> dict[str, object]:
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS")
    return {
        "arguments": arguments,
        "env": {name: os.environ.get(name) for name in (*names, "COLOUR", "HOME")},
        "cwd": str(Path.cwd()),
        "exit_hooks": atexit._ncallbacks(),
        "stdin": sys.stdin.read(),
    }


def train() -> float:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.full((2, 3), float(dist.get_rank()))).sum().backward()
    optimizer.step()
    return model.module.weight.sum().item()


def meet_twice() -> list[int]:
    sums = []
    for _ in range(2):
        dist.init_process_group("gloo")
        total = torch.ones(())
        dist.all_reduce(total)
        sums.append(int(total))
        dist.barrier()
        dist.destroy_process_group()
    return sums


def draw() -> dict[str, float]:
    import random

    import numpy as np

    return {"random": random.random(), "numpy": np.random.rand(), "torch": torch.rand(()).item()}


def end(how: list[object]) -> None:
    """End this rank in its own way."""
    match how[rank()]:
        case ["raise"]:
            raise ValueError("so it was asked")
        case ["exit", status]:
            sys.exit(status)
        case ["signal", number]:
            os.kill(os.getpid(), number)
            time.sleep(60)
        case ["interrupt"]:
            raise KeyboardInterrupt


def exit_with(status: object) -> None:
    sys.exit(status)


def not_json() -> object:
    return object()


def ends_tidily(folder: str) -> None:
    """Leave to the end of the process what an interpreter does at its end."""
    told = logging.FileHandler(f"{folder}/log")
    memory = logging.handlers.MemoryHandler(100, target=told)
    logging.getLogger().addHandler(memory)
    logging.getLogger().warning("buffered")
    temporary = tempfile.TemporaryDirectory(dir=folder, prefix="temporary-")
    weakref.finalize(temporary, Path(f"{folder}/finalized").touch)
    exit_with.keep = temporary  # type: ignore[attr-defined]
    atexit.register(lambda: print("first registered", flush=False))
    atexit.register(lambda: print("last registered"))
    threading.Thread(target=lambda: (time.sleep(0.1), print("thread"))).start()
    fork = multiprocessing.get_context("fork")
    fork.Process(target=_write_late, args=(f"{folder}/child",)).start()


def _write_late(path: str) -> None:
    time.sleep(0.1)
    Path(path).touch()


def hang_at_exit() -> str:
    atexit.register(time.sleep, 600)
    return "the target returned"


def block(folder: str) -> None:
    """Block: in Python, in a collective, and in C with the GIL held."""
    dist.init_process_group("gloo", world_size=2, rank=rank()) if rank() < 2 else None
    Path(f"{folder}/blocked-{rank()}").touch()
    if rank() == 0:
        dist.barrier()
    elif rank() == 1:
        time.sleep(600)
    else:
        hold_the_gil_for_ever()


def hold_the_gil_for_ever() -> None:
    lock = ctypes.create_string_buffer(64)
    libc = ctypes.PyDLL(None)  # unlike CDLL, it keeps the GIL
    libc.pthread_mutex_lock(lock)
    libc.pthread_mutex_lock(lock)


def leave_things_behind(folder: str, then: str) -> None:
    """Start all that might survive a rank, then end, or not."""
    loader = torch.utils.data.DataLoader(
        list(range(100)), num_workers=1, persistent_workers=True, timeout=60
    )
    batches = iter(loader)
    next(batches)
    subprocess.Popen(["sleep", "600"])
    _daemonise()
    dist.init_process_group("gloo")
    dist.barrier()
    Path(f"{folder}/ready-{rank()}").touch()
    if then == "hang" and rank() == 1:
        time.sleep(600)
    if then == "fail" and rank() == 1:
        raise ValueError("so it was asked")
    if then == "crash" and rank() == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    if then != "succeed":
        dist.barrier()
    os._exit(0)  # without the end of Python, which would stop the loader's worker


def _daemonise() -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.wait()


def sleep() -> None:
    print("born", flush=True)
    time.sleep(600)


def share_halfway() -> None:
    """As torch does it: killed before it has given the memory a size, and taken its name away."""
    file = Path(f"/dev/shm/torch_{os.getpid()}_1_0")
    file.touch()
    print(file, flush=True)
    time.sleep(600)
