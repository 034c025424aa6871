"""How well each system of the stack learns: its error as a share of its trivial baseline's.

    python -m benchmarks.learning [SYSTEM ...] [--seeds 3] [--nproc 1]

By the default options and the data that come with the command, each seed a training of its own; a
seed decides the split, the initial weights, the order and the noise. Printed are what the command
says of each and the median ratio, with the promised limit. Count on minutes a seed on two cores.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LIMITS = {"crystal": 0.7, "protein": 0.7, "detection": 0.05, "generation": 0.5}
"""Share of the trivial baseline that the median must stay below: of the mean's error (crystal,
generation), of the perplexity of the composition (protein), and for detection, where more is
better, the baseline's precision as a share of its own (1 / 20)."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", default=list(LIMITS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--nproc", type=int, default=1)
    asked = parser.parse_args()
    broken = False
    for system in asked.systems:
        ratios = [_trained(system, seed, asked.nproc) for seed in range(asked.seeds)]
        median, limit = statistics.median(ratios), LIMITS[system]
        print(f"{system}: median of {asked.seeds} seeds {median:.3f}, promised below {limit}")
        broken |= median >= limit
    return int(broken)


def _trained(system: str, seed: int, nproc: int) -> float:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    with tempfile.TemporaryDirectory() as folder:
        train = ["-m", "ddpdoctor", "train", system, f"--seed={seed}", f"--output-dir={folder}"]
        started = time.perf_counter()
        command = [*launch, f"--nproc-per-node={nproc}", *train]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        result = json.loads((Path(folder) / "results.json").read_text())
    seconds = time.perf_counter() - started
    print(f"{system} seed {seed}, {seconds:.0f} s: {done.stdout.strip()}", flush=True)
    return _ratio(system, result)


def _ratio(system: str, result: dict[str, Any]) -> float:
    match system:
        case "crystal":
            return float(result["test_mae"] / result["baseline_mae"])
        case "protein":
            return math.exp(result["test_loss"] - result["baseline_loss"])
        case "detection":
            return float(result["baseline_map"] / result["test_map"])
        case _:
            return float(result["validation_loss"] / result["baseline_loss"])


if __name__ == "__main__":
    sys.exit(main())
