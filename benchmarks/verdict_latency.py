"""Seconds from the last rank blocking to the proof of the deadlock.

    python benchmarks/verdict_latency.py [--repeats 20] [--nproc 4]

Each rank writes the time before the call that it never leaves; the latest of them is the start.
Without a doctor, the same deadlock ends at the timeout of the process group, which is printed too.
"""

from __future__ import annotations

import argparse
import os
import statistics
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--nproc", type=int, default=4)
    options = parser.parse_args()
    with ForkServer() as server:
        found = [measure(server, options.nproc) for _ in range(options.repeats)]
    latencies = [latency for latency, _ in found]
    timeout = found[0][1]
    median = statistics.median(latencies)
    print(
        f"verdict after the last rank blocked, {options.repeats} deadlocks, {options.nproc} ranks:"
    )
    print(f"  median {median:.2f} s, maximum {max(latencies):.2f} s")
    print(f"  without the doctor: {timeout:.0f} s, {timeout / median:.0f} times as long")


if __name__ == "__main__":
    main()
