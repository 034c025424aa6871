"""What the commands that need no torch cost, beside the interpreter alone and beside torch.

python benchmarks/start_up.py [--repeats 10]
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

FILE = Path(__file__).parents[1] / "tests" / "patients" / "barrier_on_rank0" / "clean.py"

COMMANDS = {
    "python -c pass (the floor)": ["-c", "pass"],
    "ddpdoctor --help": ["-m", "ddpdoctor", "--help"],
    "ddpdoctor explain DDP301": ["-m", "ddpdoctor", "explain", "DDP301"],
    "ddpdoctor lint FILE": ["-m", "ddpdoctor", "lint", "--no-cache", str(FILE)],
    "ddpdoctor check --list": ["-m", "ddpdoctor", "check", "--list"],
    "python -c 'import torch'": ["-c", "import torch"],
}


def seconds(arguments: list[str]) -> tuple[float, float]:
    """By the clock, and of CPU, which other processes have less to do with."""
    began, spent = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = now.ru_utime + now.ru_stime - spent.ru_utime - spent.ru_stime
    return time.monotonic() - began, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    repeats = parser.parse_args().repeats
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for _ in range(repeats):  # in turn: what else the machine does befalls all of them
        for name, arguments in COMMANDS.items():
            taken[name].append(seconds(arguments))
    print(f"{'':30} {'clock: least':>12} {'median':>7} {'CPU: least':>12} {'median':>7}")
    for name, each in taken.items():
        told = ""
        for values in zip(*each, strict=True):
            told += f" {min(values):10.3f} s {statistics.median(values):5.3f} s"
        print(f"{name:30}{told}")


if __name__ == "__main__":
    main()
