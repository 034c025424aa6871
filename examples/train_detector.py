"""Train a detector in two stages: the same script in one process and on many.

python examples/train_detector.py
torchrun --nproc-per-node=4 examples/train_detector.py
"""

import os
import sys

from ddpdoctor.stack.detection import train_on_digits
from ddpdoctor.stack.errors import StackError

IS_MAIN = os.environ.get("RANK", "0") == "0"


def main() -> None:
    """Train, and say what came of it."""
    result = train_on_digits(
        batch_size=16,  # per rank
        n_epochs=24,
        stop_epoch=16,  # here strong augmentation ends, and the best weights so far are taken up
        ema_restart_decay=0.98,
        resume=True,  # if it is stopped, the same command goes on, in either stage
        output_dir="output/detector",
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
