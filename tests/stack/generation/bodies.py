"""What the tests of generation run on ranks."""

from __future__ import annotations

import os
import signal
from typing import Any

import torch

from ddpdoctor.stack.errors import StackError
from ddpdoctor.stack.generation import state, train, train_generation
from ddpdoctor.stack.generation.state import WHOLE
from ddpdoctor.stack.progress import Show
from ddpdoctor.stack.resume import FOLDERS

SIZE = {"width": 16, "heads": 2, "layers": 1, "align_layer": 1, "sampling_steps": 2}


def train_digits(
    output_dir: str,
    signal_after: int | None = None,
    number: int = signal.SIGKILL,
    signal_rank: int = 0,
    kill_in_save: int | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Train on the digits, and return all that two trainings can be compared by.

    May send a rank a signal after so many steps, or kill it within so many saves.
    """
    mine = int(os.environ.get("RANK", 0)) == signal_rank
    steps: list[float] = []

    class Signaller:
        def step(self, done: float) -> None:
            steps.append(done)
            if mine and len(steps) == signal_after:
                os.kill(os.getpid(), number)

        def epoch(self, record: Any) -> None:
            pass

    class Bar:
        def __enter__(self) -> Show:
            return Signaller()

        def __exit__(self, *error: object) -> None:
            pass

    train.progress_bar = lambda world: Bar()  # type: ignore[assignment,attr-defined,return-value]
    if kill_in_save is not None and mine:
        _die_in_save(kill_in_save)
    common = {"n_epochs": 2, "batch_size": 300, **SIZE}
    result = train_generation(output_dir=output_dir, **{**common, **options})
    saved = torch.load(result.checkpoint / WHOLE, weights_only=True)
    last = torch.load(max(result.checkpoint.parent.glob(FOLDERS)) / WHOLE, weights_only=True)
    return {
        "history": [[e.train_loss, e.metric, e.learning_rate] for e in result.history],
        "measured": [result.validation_loss, result.baseline_loss, result.recognised],
        "best": result.best_epoch,
        "weights": {name: tensor.tolist() for name, tensor in saved["model"].items()},
        "average": {n: t.tolist() for n, t in last["average"]["module"].items()},
        "last": {name: tensor.tolist() for name, tensor in last["model"].items()},
        "generator": torch.rand(1).item(),
    }


def _die_in_save(which: int) -> None:
    """Die in the middle of writing the generators, of the save with this number."""
    before, saves = state.save, []

    def save(accelerator: Any, *rest: Any) -> None:
        saves.append(1)
        if len(saves) == which:
            write = accelerator.save_state

            def torn(folder: str) -> None:
                write(folder)
                os.kill(os.getpid(), signal.SIGKILL)

            accelerator.save_state = torn
        before(accelerator, *rest)

    train.save = save  # type: ignore[attr-defined]


def error_of(**kwargs: Any) -> list[str]:
    """Train, and return the type and the text of what it raises."""
    try:
        train_digits(**kwargs)
    except StackError as error:
        return [type(error).__name__, str(error)]
    return ["nothing", "it went well"]
