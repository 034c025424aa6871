"""What the tests of detection run on ranks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from ddpdoctor.stack.config import TrainingConfig
from ddpdoctor.stack.detection import DetectionResult, load_model, train_on_digits
from ddpdoctor.stack.detection.digits import AugmentedCanvases, Canvases, load_digits
from ddpdoctor.stack.detection.model import Detector, ModelConfig
from ddpdoctor.stack.detection.stages import load_resume_state
from ddpdoctor.stack.detection.train import average_precision
from ddpdoctor.stack.ema import ExponentialMovingAverage
from ddpdoctor.stack.errors import StackError
from ddpdoctor.stack.process_group import session
from ddpdoctor.stack.resume import Progress, Trained, keep, name_of
from tests.stack.killing import killed_at


def tiny(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a training that takes a second or two."""
    size = {"hidden_dim": 8, "heads": 2, "layers": 1, "n_images": 50}
    return {"n_epochs": 5, "stop_epoch": 2, "batch_size": 8, **size, **options}


def train(float64: bool = False, save_kills: int | None = None, **options: Any) -> dict[str, Any]:
    """Train, and return what two trainings can be compared by."""
    if float64:
        torch.set_default_dtype(torch.float64)
    with killed_at(save_kills):
        return summary(train_on_digits(**tiny(options)))


def train_with_a_fault_on_rank_1(**options: Any) -> dict[str, Any]:
    """Train where one rank alone meets an error, in the first epoch of stage 2."""
    if os.environ["RANK"] == "1":
        original = AugmentedCanvases.__getitem__

        def fails(self: AugmentedCanvases, index: int) -> Any:
            if self.epoch == self.stop_epoch:
                raise OSError(5, "Input/output error")
            return original(self, index)

        AugmentedCanvases.__getitem__ = fails  # type: ignore[method-assign, assignment]
    return train(**options)


def summary(result: DetectionResult) -> dict[str, Any]:
    state = torch.load(result.checkpoint.with_name("last.pth"), weights_only=True)
    return {
        "world_size": result.world_size,
        "history": [[e.train_loss, e.metric, e.learning_rate] for e in result.history],
        "test": [result.test_map, result.test_map50, result.baseline_map],
        "best": [result.best_epoch, result.best_stage, result.refreshes],
        "weights": [p.tolist() for p in load_model(result.checkpoint).parameters()],
        "last": [p.tolist() for p in state["model"].values()],
        "decay": state["average"]["decay"],
        "generator": torch.rand(1).item(),
        "checkpoint": str(result.checkpoint),
    }


def error_of(call: str, **kwargs: Any) -> list[str]:
    """Call a function of this file that is to be refused, and return the error's type and text."""
    try:
        globals()[call](**kwargs)
    except StackError as error:
        return [type(error).__name__, str(error)]
    return ["nothing", "it went well"]


def metric_of(path: str) -> float:
    """Evaluate one set of weights on 23 canvases, in float64."""
    torch.set_default_dtype(torch.float64)
    model = load_model(path)
    scenes = Canvases(load_digits(0)[1], 23, [0])
    with session() as world:
        return average_precision(model, scenes, 4, world)


def resume_state(path: str) -> None:
    """Load a checkpoint as the switch of stages does."""
    with session() as world:
        load_resume_state(Path(path), trained(), world)


def trained() -> Trained:
    torch.manual_seed(0)
    model = Detector(ModelConfig(hidden_dim=8, heads=2, layers=1), 10)
    optimizer = torch.optim.AdamW(model.parameters())
    return Trained(
        model, optimizer, torch.amp.GradScaler(enabled=False), ExponentialMovingAverage(model, 0.9)
    )


def save_checkpoint(folder: Path, progress: Progress, it: Trained) -> Path:
    """Write a checkpoint of this moment, as `fit` does at the end of an epoch."""
    with session() as world:
        keep(it, progress, {}, TrainingConfig(output_dir=folder), world)
    return folder / name_of(progress)
