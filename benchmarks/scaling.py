"""What a rank keeps of a lone one's speed, for each system of the stack.

    python -m benchmarks.scaling [SYSTEM ...] [--nproc 2] [--epochs 4] [--OPTION-OF-TRAIN=VALUE ...]

By the default options and the data that come with the command, one thread a rank: the same samples
are trained on by one rank, and shared out to `--nproc` of them. Printed is what is left of the
speed, by the seconds of data, forward, backward and optimizer in the median epoch after the first,
and the same for as many lone trainings side by side, which exchange nothing: what they lose, the
machine takes, and no stack can keep. It needs a quiet machine with a core for each rank. The aim is
at least 0.9 of a lone one's speed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SYSTEMS = {"crystal": (), "protein": (), "detection": ("--stop-epoch=2",), "generation": ()}
"""Each with what so few epochs ask of it."""
AIM = 0.9


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", default=list(SYSTEMS))
    parser.add_argument("--nproc", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=4)
    asked, options = parser.parse_known_args()
    for unknown in set(asked.systems) - SYSTEMS.keys():
        parser.error(f"{unknown} is none of {', '.join(SYSTEMS)}")
    if asked.epochs < 2:
        parser.error("--epochs: at least 2, of which the first does not count")
    broken = False
    for system in asked.systems:
        [alone] = _epochs(system, 1, 1, asked.epochs, options)
        beside = max(_epochs(system, 1, asked.nproc, asked.epochs, options))
        [among] = _epochs(system, asked.nproc, 1, asked.epochs, options)
        kept, floor = alone / (asked.nproc * among), alone / beside
        print(
            f"{system}: one of {asked.nproc} ranks has {kept:.3f} of a lone one's speed, "
            f"one of {asked.nproc} lone ones side by side {floor:.3f}",
            flush=True,
        )
        broken |= kept < AIM
    return int(broken)


def _epochs(system: str, nproc: int, jobs: int, epochs: int, options: list[str]) -> list[float]:
    """Seconds of an epoch of each of `jobs` trainings that run at the same time."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command = [*launch, f"--nproc-per-node={nproc}", "-m", "ddpdoctor", "train", system]
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder) / str(job) for job in range(jobs)]
        started = [
            subprocess.Popen(
                [
                    *command,
                    *SYSTEMS[system],
                    *options,
                    f"--epochs={epochs}",
                    f"--output-dir={output}",
                ],
                env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
                stdout=subprocess.DEVNULL,
            )
            for output in outputs
        ]
        statuses = [job.wait() for job in started]
        if any(statuses):
            raise SystemExit(f"{system}: the training failed")
        return [_epoch(output) for output in outputs]


def _epoch(output: Path) -> float:
    history = json.loads((output / "results.json").read_text())["history"]
    return statistics.median(sum(epoch["phases"].values()) for epoch in history[1:])


if __name__ == "__main__":
    sys.exit(main())
