"""Train a generator of digits, by accelerate: the same script in one process and on many.

python examples/train_generator.py
torchrun --nproc-per-node=4 examples/train_generator.py
ACCELERATE_USE_CPU=1 accelerate launch --multi_gpu --num_processes 2 examples/train_generator.py
"""

import os
import sys

from ddpdoctor.stack.errors import StackError
from ddpdoctor.stack.generation import train_generation

IS_MAIN = os.environ.get("RANK", "0") == "0"


def main() -> None:
    """Train, and say what came of it."""
    result = train_generation(
        global_batch=64,  # of all ranks together: the same training on any number of them
        n_epochs=60,
        align_weight=0.5,  # of the representation alignment, beside 1 for the flow
        resume=True,  # if it is stopped, the same command goes on
        output_dir="output/generator",
    )
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
