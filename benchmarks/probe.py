"""Whether `ddpdoctor probe` measures what a plain loop measures, and how long it takes for it.

    python -m benchmarks.probe [--rounds 60] [--nproc 2]

The ranks measure each thing in turn by the probe's own functions and by loops written by hand, in
rounds of a few calls: what else the machine does meets all of them alike. A loop waits for the
others, looks at the clock, makes some calls in a row, and looks again; of five such rows it takes
the median, for collectives of the slowest rank. `in one row` waits once, before all its calls.
Printed is the median of the rounds' ratios, probe by loop, with its 95 % confidence interval by
order statistics, which a few rounds that somebody disturbed do not move; then what a whole probe
takes, and what of it measures.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ddpdoctor.probe.talk import Talk

SIZES = (1 << 10, 1 << 16, 1 << 20, 1 << 24)
CALLS, ROWS = 25, 5
_FOLDER = "PROBE_BENCHMARK"
Ways = dict[str, Callable[[], float]]


def rank(rounds: int) -> None:
    """What a rank does; rank 0 writes the times of all rounds down."""
    import torch
    import torch.distributed as dist

    from ddpdoctor.probe.progress import Progress
    from ddpdoctor.probe.talk import Talk

    folder = Path(os.environ[_FOLDER])
    torch.set_num_threads(1)
    own, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=own, world_size=size)
    talk = Talk(own, size, torch.device("cpu"), Progress(own, folder / f"stage-{own}"))
    tried = {**_collectives(talk), **_links(talk)}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in tried}
    for number in range(rounds + 1):
        for name, ways in tried.items():
            order = random.Random(number).sample(sorted(ways), len(ways))  # the same on all ranks
            times = {way: ways[way]() for way in order}
            if number:  # the first round opens connections
                found[name].append(times)
    if own == 0:
        (folder / "times.json").write_text(json.dumps(found))
    dist.destroy_process_group()


def _collectives(talk: Talk) -> dict[str, Ways]:
    from ddpdoctor.probe.bandwidth import _OPERATIONS, in_bytes

    return {
        f"{name} of {in_bytes(size)}": _timed_ways(talk, prepare(talk, size))
        for name, (prepare, _) in _OPERATIONS.items()
        for size in SIZES
    }


def _timed_ways(talk: Talk, work: Callable[[], object]) -> Ways:
    import torch
    import torch.distributed as dist

    def slowest(times: list[float]) -> float:
        told = torch.tensor(times, dtype=torch.float64)
        dist.all_reduce(told, dist.ReduceOp.MAX)
        return statistics.median(told.tolist())

    def row(calls: int) -> float:
        dist.barrier()
        begun = time.perf_counter()
        for _ in range(calls):
            work()
        return (time.perf_counter() - begun) / calls

    return {
        "probe": lambda: talk.timed(work, 1e9, most=CALLS).middle,
        "loop": lambda: slowest([row(CALLS // ROWS) for _ in range(ROWS)]),
        "in one row": lambda: slowest([row(CALLS)]),
    }


def _links(talk: Talk) -> dict[str, Ways]:
    import torch
    import torch.distributed as dist

    from ddpdoctor.probe.links import _LARGE, _SMALL, _link, _undisturbed

    def probe(what: str) -> float:
        talk.together()
        return _link(talk, 0, 1, 1.0)[what] if talk.rank < 2 else 1.0

    def loop(size: int) -> float:
        tensor = torch.zeros(size // 4)
        dist.barrier()
        times = []
        for _ in range(15 if size == _SMALL else 9) if talk.rank < 2 else ():
            begun = time.perf_counter()
            for sender in (0, 1):
                if talk.rank == sender:
                    dist.send(tensor, 1 - sender)
                else:
                    dist.recv(tensor, sender)
            times.append(time.perf_counter() - begun)
        if not times:
            return 1.0
        # The probe's own statistic of each: another one would be compared, not another loop.
        return (min(times[1:]) if size == _SMALL else _undisturbed(times[1:])) / 2

    return {
        "latency of a pair": {"probe": lambda: probe("latency"), "loop": lambda: loop(_SMALL)},
        "1 MiB between a pair": {
            "probe": lambda: _LARGE / probe("bandwidth"),
            "loop": lambda: loop(_LARGE),
        },
    }


def start(rounds: int, nproc: int) -> dict[str, list[dict[str, float]]]:
    """Start the ranks, and give what rank 0 wrote."""
    with tempfile.TemporaryDirectory(prefix="probe-") as folder:
        command = [sys.executable, "-m", "benchmarks.probe", "--rank", f"--rounds={rounds}"]
        own = {_FOLDER: folder, "WORLD_SIZE": str(nproc), "GLOO_SOCKET_IFNAME": "lo"}
        ranks = [
            subprocess.Popen(command, env={**os.environ, **own, "RANK": str(number)})
            for number in range(nproc)
        ]
        statuses = [one.wait() for one in ranks]
        if any(statuses):
            sys.exit("a rank failed")
        times: dict[str, list[dict[str, float]]] = json.loads(
            Path(folder, "times.json").read_text()
        )
        return times


def report(found: dict[str, list[dict[str, float]]]) -> None:
    """A line for each thing: its time by the loop, and the ratios."""
    print(f"{'':26}{'by the loop':>12}  {'probe / loop (95 %)':28}probe / in one row")
    every: list[float] = []
    for name, rounds in found.items():
        told = f"{statistics.median(one['loop'] for one in rounds) * 1e6:9.0f} µs"
        ratios = [one["probe"] / one["loop"] for one in rounds]
        every += ratios
        line = f"{name:26}{told:>12}  {_median(ratios):28}"
        if "in one row" in rounds[0]:
            line += _median([one["probe"] / one["in one row"] for one in rounds])
        print(line)
    print(f"{'all':26}{'':12}  {_median(every)}")


def _median(values: list[float]) -> str:
    ordered, half = sorted(values), 0.98 * math.sqrt(len(values))
    low = ordered[max(0, math.floor(len(values) / 2 - half))]
    high = ordered[min(len(values) - 1, math.ceil(len(values) / 2 + half))]
    return f"{statistics.median(values):.3f} ({low:.3f} to {high:.3f})"


def report_overhead(nproc: int, seconds: float) -> None:
    """What a whole probe takes, and what of it measures."""
    with tempfile.TemporaryDirectory(prefix="probe-") as folder:
        path = Path(folder, "probe.json")
        begun = time.monotonic()
        subprocess.run(
            [
                *(sys.executable, "-m", "ddpdoctor", "probe", f"--nproc={nproc}"),
                *("--format=json", f"--seconds={seconds}", f"--output={path}"),
            ],
            stderr=subprocess.DEVNULL,
            check=False,
        )
        whole = time.monotonic() - begun
        measured = json.loads(path.read_text())["data"]["measured"]["seconds"]
    print(f"a probe of {nproc} ranks: {whole:.1f} s, of which its ranks measured {measured:.1f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--nproc", type=int, default=2)
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        rank(options.rounds)
        return 0
    if options.rounds < 6:
        parser.error("an interval needs at least 6 rounds")
    report(start(options.rounds, options.nproc))
    report_overhead(options.nproc, 20.0)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
