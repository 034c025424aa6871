"""Seconds from the last rank blocking to the proof of the deadlock.

    python benchmarks/verdict_latency.py [--repeats 20] [--nproc 4]

Each rank writes the time before the call that it never leaves; the latest of them is the start.
Measured are the proof in forked ranks, as `check` sees it, and the whole of `ddpdoctor run --
torchrun`: until its report stands on stderr, the job being ended by then. Without a doctor, the
same deadlock ends at the timeout of the process group, which is printed too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ddpdoctor.launch import ForkServer, Job
from ddpdoctor.observation import Observation


def deadlock() -> None:
    """Rank 0 enters a barrier that no other rank ever calls."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    dist.barrier()
    now = Path(os.environ["DDPDOCTOR_RUN_DIR"], f"blocked-{dist.get_rank()}")
    now.write_text(str(time.monotonic()))
    if dist.get_rank() == 0:
        dist.barrier()
    else:
        dist.all_reduce(torch.ones(4))


def measure(server: ForkServer, nproc: int) -> tuple[float, float]:
    """Latency of one verdict, and the timeout that would have ended the job otherwise."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = Job(
            f"{__file__}:deadlock",
            nproc,
            folder,
            env={"DDPDOCTOR_RUN_DIR": name},
            watch=True,
        )
        with server.launch(job) as world:
            observation = Observation(folder, nproc)
            while observation.poll(world.poll()) is None:
                time.sleep(0.005)
            proven = time.monotonic()
        blocked = max(float((folder / f"blocked-{rank}").read_text()) for rank in range(nproc))
        return proven - blocked, observation.evidence.ranks[0].groups["0"].timeout


def measure_run(nproc: int) -> float:
    """From the last rank's blocking to the report of `ddpdoctor run`."""
    with tempfile.TemporaryDirectory() as name:
        torchrun = [
            "torchrun",
            "--standalone",
            f"--nproc-per-node={nproc}",
            __file__,
            "--be-a-rank",
        ]
        process = subprocess.Popen(
            [sys.executable, "-m", "ddpdoctor", "run", "--", *torchrun],
            cwd=name,
            env={**os.environ, "DDPDOCTOR_RUN_DIR": name, "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        while not process.stderr.readline().startswith("\N{HEAVY MULTIPLICATION X}"):
            pass
        told = time.monotonic()
        process.communicate()
        files = [Path(name, f"blocked-{rank}") for rank in range(nproc)]
        return told - max(float(file.read_text()) for file in files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--nproc", type=int, default=4)
    parser.add_argument("--be-a-rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.be_a_rank:
        deadlock()
        return
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with ForkServer() as server:
        found = [measure(server, options.nproc) for _ in range(options.repeats)]
    timeout = found[0][1]
    tell("proof, in forked ranks", [latency for latency, _ in found], timeout)
    tell("report of ddpdoctor run", [measure_run(options.nproc) for _ in found], timeout)


def tell(what: str, latencies: list[float], timeout: float) -> None:
    median = statistics.median(latencies)
    print(
        f"{what}, after the last rank blocked: median {median:.2f} s, maximum {max(latencies):.2f} "
        f"s ({len(latencies)} deadlocks); without the doctor {timeout:.0f} s, "
        f"{timeout / median:.0f} times as long",
        flush=True,
    )


if __name__ == "__main__":
    main()
