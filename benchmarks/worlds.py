"""How long a fresh world takes, by our fork server and by the other ways, in one run.

    python benchmarks/worlds.py [--nproc 4] [--repeats 5]

The others are torchrun, torch.multiprocessing.spawn, and PyTorch's own MultiProcessTestCase, which
needs the package expecttest. The body, the same for all: join a gloo group, build a
DistributedDataParallel, one optimizer step, leave. Count on half a minute a repeat.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ddpdoctor.launch import ForkServer, Job

PROMISE = 0.2
"""Seconds, for four ranks on two cores, once warm."""


def body() -> None:
    import torch.distributed as dist

    dist.init_process_group("gloo")
    _one_step()
    dist.destroy_process_group()


def _one_step() -> None:
    # A function of its own: what holds the reducer must be gone before the group is destroyed.
    import torch
    from torch.nn.parallel import DistributedDataParallel

    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()


def nothing() -> None:
    """The body of a world that only begins and ends."""


def fork_floor(nproc: int) -> float:
    """Seconds to fork this process, torch and all, and to see the children end at once."""
    began = time.perf_counter()
    children = []
    for _ in range(nproc):
        if (child := os.fork()) == 0:
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    return time.perf_counter() - began


def by_fork_server(server: ForkServer, function: str, nproc: int) -> None:
    job = Job(f"{Path(__file__).resolve()}:{function}", nproc, server.fresh_run_dir())
    with server.launch(job) as world:
        if not world.wait(60) or any(fate.exit_code != 0 for fate in world.poll()):
            raise RuntimeError(f"the world did not end well: {world.poll()}")


def by_torchrun(nproc: int) -> None:
    ranks = ["--standalone", f"--nproc-per-node={nproc}"]
    command = [sys.executable, "-m", "torch.distributed.run", *ranks, __file__, "--body"]
    subprocess.run(command, check=True, capture_output=True)


def by_spawn(nproc: int) -> None:
    import torch.multiprocessing

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    torch.multiprocessing.spawn(_spawned, args=(nproc, port), nprocs=nproc)


def _spawned(rank: int, nproc: int, port: int) -> None:
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(nproc))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    body()


def by_test_case(nproc: int) -> None:
    import unittest

    from worlds_test_case import OneStep

    OneStep.nproc = nproc
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(OneStep).run(result)
    if not result.wasSuccessful():
        raise RuntimeError(str(result.failures + result.errors))


def measure(way: Callable[[], None], repeats: int) -> list[float]:
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        way()
        seconds.append(time.perf_counter() - began)
    return seconds


def measure_floor(server: ForkServer, nproc: int, repeats: int) -> list[float]:
    seconds = []
    for _ in range(repeats):
        target = f"{Path(__file__).resolve()}:fork_floor"
        job = Job(target, 1, server.fresh_run_dir(), kwargs={"nproc": nproc})
        with server.launch(job) as world:
            world.wait(60)
            seconds.append(world.results[0])
    return seconds


def report(name: str, seconds: list[float], ours: float) -> None:
    median = statistics.median(seconds)
    span = f"{min(seconds):.3f}..{max(seconds):.3f}"
    print(f"{name:42s} {median:8.3f} s  {span:>16s} s  {median / ours:6.1f} x", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nproc", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--body", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.body:
        body()
        return
    nproc, repeats = arguments.nproc, arguments.repeats
    os.environ.update(OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
    print(f"{nproc} ranks, {repeats} repeats, load {os.getloadavg()[0]:.1f} at the start\n")
    with ForkServer() as server:
        (first,) = measure(partial(by_fork_server, server, "body", nproc), 1)
        # Fast and noisy: more repeats than the others get, for a median that means something.
        warm = measure(partial(by_fork_server, server, "body", nproc), 5 * repeats)
        ours = statistics.median(warm)
        report("fork server, warm", warm, ours)
        report("fork server, first launch (imports torch)", [first], ours)
        empty = measure(partial(by_fork_server, server, "nothing", nproc), 5 * repeats)
        report("  of it: a world that does nothing", empty, ours)
        report("  of it: raw forks", measure_floor(server, nproc, 5 * repeats), ours)
    report("torchrun --standalone", measure(partial(by_torchrun, nproc), repeats), ours)
    report("torch.multiprocessing.spawn", measure(partial(by_spawn, nproc), repeats), ours)
    try:
        report("MultiProcessTestCase", measure(partial(by_test_case, nproc), repeats), ours)
    except ImportError as error:
        print(f"{'MultiProcessTestCase':42s} not measured: {error}")
    holds = "holds" if ours <= PROMISE else "does not hold"
    print(f"\na fresh {nproc}-rank world in at most {PROMISE} s, median: {holds} ({ours:.3f} s)")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
