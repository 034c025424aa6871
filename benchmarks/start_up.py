"""What the commands that need no torch cost, beside the interpreter alone and beside torch.

python benchmarks/start_up.py [--repeats 10]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass (the floor)": ["-c", "pass"],
    "ddpdoctor --help": ["-m", "ddpdoctor", "--help"],
    "ddpdoctor explain DDP301": ["-m", "ddpdoctor", "explain", "DDP301"],
    "ddpdoctor check --list": ["-m", "ddpdoctor", "check", "--list"],
    "python -c 'import torch'": ["-c", "import torch"],
}


def seconds(arguments: list[str]) -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    repeats = parser.parse_args().repeats
    medians = {
        name: statistics.median(seconds(arguments) for _ in range(repeats))
        for name, arguments in COMMANDS.items()
    }
    torch = medians["python -c 'import torch'"]
    for name, median in medians.items():
        print(f"{name:30} {median:5.2f} s   {median / torch:4.2f} of importing torch")


if __name__ == "__main__":
    main()
