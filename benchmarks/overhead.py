"""What `ddpdoctor run` costs a training that is well: step time and start-up, as paired ratios.

    python benchmarks/overhead.py [--pairs 20] [--steps 400]

Two ranks on gloo train a perceptron of a million parameters, in steps of about 5 ms. With and
without the doctor they are launched in turn, the first of each pair by lot; a pair gives one ratio
of the mean step times, without the slowest hundredth of the steps. Printed are the geometric mean
of the ratios with its 95 % confidence interval, and the seconds that a rank takes from its start to
its first step. Torch's own `TORCH_DISTRIBUTED_DEBUG=DETAIL` is tried beside it.
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
from dataclasses import dataclass
from pathlib import Path

RANKS = 2
WARM_UP = 40
DETAIL = {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}
_STARTED, _FOLDER = "OVERHEAD_STARTED", "OVERHEAD_FOLDER"
_T_95 = {5: 2.571, 10: 2.228, 15: 2.131, 20: 2.086, 30: 2.042, 60: 2.0, 1000: 1.96}


@dataclass(frozen=True)
class Launch:
    """One launch, as its ranks timed it."""

    step: float
    """Seconds; mean over ranks and steps, without the slowest hundredth."""
    cpu: float
    """CPU seconds of a rank's process for each step, all threads; says more on a busy machine."""
    start_up: float
    """Seconds from the start of a rank to its first step; mean over ranks."""


def train(steps: int) -> None:
    """What a rank does."""
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    folder = Path(os.environ[_FOLDER])
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/store",
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
    )
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512))
    model = DistributedDataParallel(layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(8, 512)
    times, cpu = [], 0.0
    start_up = time.time() - float(os.environ[_STARTED])
    for number in range(WARM_UP + steps):
        if number == WARM_UP:
            cpu = time.process_time()
        began = time.perf_counter()
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        times.append(time.perf_counter() - began)
    cpu = (time.process_time() - cpu) / steps
    result = folder / f"rank-{dist.get_rank()}.json"
    result.write_text(json.dumps({"start_up": start_up, "cpu": cpu, "steps": times[WARM_UP:]}))
    del model, optimizer
    dist.destroy_process_group()


def start_ranks(steps: int) -> int:
    """Start the ranks, as a launcher does, and wait for them; the worst exit status."""
    ranks = []
    for rank in range(RANKS):
        own = {"RANK": str(rank), "LOCAL_RANK": str(rank), _STARTED: str(time.time())}
        command = [sys.executable, __file__, "--rank", f"--steps={steps}"]
        ranks.append(subprocess.Popen(command, env={**os.environ, **own}))
    return max(abs(rank.wait()) for rank in ranks)


def launch(steps: int, *, doctor: bool, extra: dict[str, str] | None = None) -> Launch | int:
    """One launch; its times, or the exit status it failed with."""
    with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
        command = [sys.executable, __file__, "--launcher", f"--steps={steps}"]
        if doctor:
            run = [sys.executable, "-m", "ddpdoctor", "run", f"--run-dir={folder}/run", "--"]
            command = [*run, *command]
        own = {_FOLDER: folder, "WORLD_SIZE": str(RANKS), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, env={**os.environ, **own, **(extra or {})}, stderr=subprocess.PIPE, check=False
        )
        results = [json.loads(file.read_text()) for file in Path(folder).glob("rank-*.json")]
        if done.returncode or len(results) < RANKS:
            return done.returncode or 1
        return Launch(
            step=statistics.mean(_without_slowest(result["steps"]) for result in results),
            cpu=statistics.mean(result["cpu"] for result in results),
            start_up=statistics.mean(result["start_up"] for result in results),
        )


def _without_slowest(times: list[float]) -> float:
    return statistics.mean(sorted(times)[: len(times) - len(times) // 100])


def interval(values: list[float]) -> tuple[float, float, float]:
    """Mean, and the bounds of its 95 % confidence interval (Student)."""
    mean = statistics.mean(values)
    quantile = next(t for n, t in sorted(_T_95.items(), reverse=True) if len(values) > n)
    half = quantile * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def measure(pairs: int, steps: int) -> list[tuple[Launch, Launch]]:
    """Launches without and with the doctor."""
    found = []
    for number in range(pairs):
        order = random.Random(number).sample((False, True), 2)
        made = {doctor: launch(steps, doctor=doctor) for doctor in order}
        without, with_doctor = made[False], made[True]
        if isinstance(without, int) or isinstance(with_doctor, int):
            sys.exit(f"a launch failed: {made}")
        found.append((without, with_doctor))
        told = f"{without.step * 1e3:.3f} ms, with the doctor {with_doctor.step * 1e3:.3f} ms"
        print(f"pair {number + 1:2}: {told}", file=sys.stderr)
    return found


def report(found: list[tuple[Launch, Launch]]) -> None:
    """The ratio, the start-up, and what torch's own debugging mode does instead."""
    step = statistics.median(without.step for without, _ in found)
    print(f"step without the doctor       {step * 1e3:.2f} ms (median of {len(found)} launches)")
    for name, kind in (("step", "step"), ("CPU of a step,", "cpu")):
        ratios = [math.log(getattr(b, kind) / getattr(a, kind)) for a, b in found]
        ratio, low, high = (math.exp(bound) for bound in interval(ratios))
        print(f"{f'{name} with / without':30}{ratio:.4f}  (95 %: {low:.4f} to {high:.4f})")
    waits = [with_doctor.start_up - without.start_up for without, with_doctor in found]
    wait, low, high = interval(waits)
    print(f"start-up a rank, more by      {wait:.3f} s  (95 %: {low:.3f} to {high:.3f})")


def report_detail(steps: int) -> None:
    """The step time of torch's debugging mode, or how it ends."""
    detail, plain = (launch(steps, doctor=False, extra=extra) for extra in (DETAIL, None))
    if isinstance(detail, int) or isinstance(plain, int):
        print(f"TORCH_DISTRIBUTED_DEBUG=DETAIL does not run here: exit status {detail}")
    else:
        print(f"TORCH_DISTRIBUTED_DEBUG=DETAIL  {detail.step / plain.step:.3f} times as long")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--launcher", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        train(options.steps)
        return 0
    if options.launcher:
        return start_ranks(options.steps)
    if options.pairs < 6:
        parser.error("an interval needs at least 6 pairs")
    report(measure(options.pairs, options.steps))
    report_detail(options.steps)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
