"""Train on crystals: the same script in one process and on many.

    python examples/train_crystals.py
    torchrun --nproc-per-node=4 examples/train_crystals.py

Without a file it trains on the 71 elements of ase's `dcdft` collection. With one:

    torchrun --nproc-per-node=4 examples/train_crystals.py crystals.extxyz shear_modulus
"""

import os
import sys
from typing import Any

from ddpdoctor.stack.crystal import dcdft, train_from_extxyz, train_from_list
from ddpdoctor.stack.errors import StackError

OPTIONS: dict[str, Any] = {
    "batch_size": 16,  # per rank
    "n_epochs": 30,
    "use_angle": True,
    "resume": True,  # if it is stopped, the same command goes on
    "output_dir": "output/crystals",
}
IS_MAIN = os.environ.get("RANK", "0") == "0"


def main() -> None:
    """Train, and say what came of it."""
    if len(sys.argv) == 3:
        result = train_from_extxyz(sys.argv[1], sys.argv[2], **OPTIONS)
    else:
        strucs, labels = dcdft()
        result = train_from_list(strucs, labels, **OPTIONS)
    if IS_MAIN:
        print(f"test error {result.test_mae:.3f}, mean predictor {result.baseline_mae:.3f}")
        print(f"{result.world_size} rank(s), best weights {result.checkpoint}")


if __name__ == "__main__":
    try:
        main()
    except StackError as error:
        # Every rank raises the same one; once is enough to say it.
        if IS_MAIN:
            print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
