"""Train on proteins: the same script in one process and on many.

    python examples/train_proteins.py
    torchrun --nproc-per-node=4 examples/train_proteins.py

Without a folder it trains on made-up chains. With one, on its PDB and mmCIF files:

    torchrun --nproc-per-node=4 examples/train_proteins.py structures/
"""

import os
import sys
from typing import Any

from ddpdoctor.stack.errors import StackError
from ddpdoctor.stack.protein import synthetic_backbones, train_from_backbones, train_from_pdb

OPTIONS: dict[str, Any] = {
    "batch_size": 8,  # per rank
    "n_epochs": 10,
    "mask_ratio": 0.15,
    "resume": True,  # if it is stopped, the same command goes on
    "output_dir": "output/proteins",
}
IS_MAIN = os.environ.get("RANK", "0") == "0"


def main() -> None:
    """Train, and say what came of it."""
    if len(sys.argv) == 2:
        result = train_from_pdb(sys.argv[1], cache_dir="output/cache", **OPTIONS)
    else:
        result = train_from_backbones(synthetic_backbones(200, seed=0), **OPTIONS)
    if IS_MAIN:
        print(result.sentence, end="")


if __name__ == "__main__":
    try:
        main()
    except StackError as error:
        # Every rank raises the same one; once is enough to say it.
        if IS_MAIN:
            print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
