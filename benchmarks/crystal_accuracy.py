"""How well the crystal stack learns: its test error against that of predicting the mean.

    DDPDOCTOR_DATA=FOLDER python benchmarks/crystal_accuracy.py

Trains with the default options on mp_binary_elasticity_512.extxyz, on log10 of the shear and of the
bulk modulus in GPa, with three seeds each (a seed decides the split, the initial weights and the
order). Prints the ratio of the two errors, which should be under 0.7, and the seconds of each.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

from ddpdoctor.stack.crystal import TrainingResult, train_from_extxyz

FILE = "mp_binary_elasticity_512.extxyz"
SEEDS = (0, 1, 2)
LIMIT = 0.7


def main() -> int:
    folder = os.environ.get("DDPDOCTOR_DATA")
    if not folder:
        print(f"set DDPDOCTOR_DATA to the folder with {FILE}", file=sys.stderr)
        return 2
    print("property       seed  test MAE  mean predictor's  ratio  best epoch  seconds")
    medians = []
    for target in ("shear_modulus", "bulk_modulus"):
        ratios = [trained(Path(folder) / FILE, target, seed).ratio for seed in SEEDS]
        medians.append(statistics.median(ratios))
        print(f"{target:13}  median of {len(SEEDS)} seeds: {medians[-1]:.3f}")
    return 0 if max(medians) < LIMIT else 1


def trained(file: Path, target: str, seed: int) -> TrainingResult:
    with tempfile.TemporaryDirectory() as output_dir:
        result = train_from_extxyz(
            file, target, log10=True, random_seed=seed, output_dir=output_dir
        )
    print(
        f"{target:13}  {seed:4}  {result.test_mae:8.4f}  {result.baseline_mae:16.4f}"
        f"  {result.ratio:5.3f}  {result.best_epoch:10}  {result.seconds:7.0f}",
        flush=True,
    )
    return result


if __name__ == "__main__":
    sys.exit(main())
