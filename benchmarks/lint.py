"""How long `ddpdoctor lint` takes, as ratios in one run.

    python benchmarks/lint.py TREE [--ruff RUFF] [--flake8 FLAKE8]

TREE is torch's own package by default. Each contestant runs in a process of its own, `--rounds`
times in turn; CPU seconds (user and system, children included) are compared by their minimum, wall
seconds are shown beside them. `--flake8` must have a torch plugin (torchfix) installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PARSE = """
import ast, sys, warnings
from ddpdoctor.lint.files import collect
warnings.simplefilter("ignore")
for path in collect(sys.argv[1:]):
    if path.endswith(".py"):
        with open(path, "rb") as file:
            try:
                ast.parse(file.read())
            except (SyntaxError, ValueError, RecursionError):
                pass
"""
LINT = """
import sys
from pathlib import Path
from ddpdoctor.lint.cache import Cache
from ddpdoctor.lint.files import collect
from ddpdoctor.lint.linter import lint
cache = Path(sys.argv[2]) if sys.argv[2] else None
lint(list(collect(sys.argv[3:])), jobs=int(sys.argv[1]), cache=Cache(cache))
"""


def measure(command: list[str]) -> tuple[float, float]:
    """(CPU seconds, wall seconds) of one run."""
    before, start = os.times(), time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after, end = os.times(), time.perf_counter()
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system, end - start


def torch_package() -> str:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        sys.exit("torch is not installed: name a TREE")
    return str(Path(spec.origin).parent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tree", nargs="?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ruff", default=shutil.which("ruff"))
    parser.add_argument("--flake8", default="")
    args = parser.parse_args()
    tree = args.tree or torch_package()
    python = sys.executable
    with tempfile.TemporaryDirectory() as cache:
        contestants = {
            "ast.parse alone": [python, "-c", PARSE, tree],
            "lint, 1 process": [python, "-c", LINT, "1", "", tree],
            "lint, all cores": [python, "-c", LINT, str(os.cpu_count()), "", tree],
            "lint, cached": [python, "-c", LINT, "1", cache, tree],
            "lint, one file": [python, "-c", LINT, "1", "", __file__],
        }
        if args.ruff:
            contestants["ruff check"] = [args.ruff, "check", "--isolated", "--no-cache", tree]
        if args.flake8:
            contestants["flake8 + torchfix"] = [args.flake8, "--isolated", "--select=TOR", tree]
        subprocess.run(contestants["lint, cached"], check=True)
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
        for _ in range(args.rounds):
            for name, command in contestants.items():
                times[name].append(measure(command))
    cpu = {name: min(each[0] for each in runs) for name, runs in times.items()}
    wall = {name: min(each[1] for each in runs) for name, runs in times.items()}
    base = "ast.parse alone"
    print(f"{'':20} {'CPU s':>8} {'ratio':>7} {'wall s':>8} {'ratio':>7}")
    for name in contestants:
        ratios = cpu[name] / cpu[base], wall[name] / wall[base]
        print(f"{name:20} {cpu[name]:8.2f} {ratios[0]:7.2f} {wall[name]:8.2f} {ratios[1]:7.2f}")


if __name__ == "__main__":
    main()
