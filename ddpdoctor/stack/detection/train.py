"""Train a detector in two stages, on canvases with handwritten digits.

    result = train_on_digits(n_epochs=24, stop_epoch=16, output_dir="./output")

The same script runs in a plain process and under `torchrun --nproc-per-node=4`.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Self

import torch
from pydantic import Field, PositiveInt, model_validator
from torch import nn

from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.config import Flags, TrainingConfig, parse
from ddpdoctor.stack.detection.average_precision import THRESHOLDS, mean_average_precision
from ddpdoctor.stack.detection.digits import (
    CLASSES,
    AugmentedCanvases,
    CanvasConfig,
    Canvases,
    load_digits,
)
from ddpdoctor.stack.detection.matching import detection_loss_sum
from ddpdoctor.stack.detection.model import Detector, ModelConfig, detect
from ddpdoctor.stack.detection.results import DetectionResult
from ddpdoctor.stack.detection.scene import Batch, Scene, collate
from ddpdoctor.stack.detection.stages import BEST, refreshes, two_stages
from ddpdoctor.stack.evaluation import predict_ragged
from ddpdoctor.stack.extras import need
from ddpdoctor.stack.outcome import together
from ddpdoctor.stack.preparation import prepare_folder, require_equal
from ddpdoctor.stack.process_group import Backend, World, session
from ddpdoctor.stack.progress import progress_bar
from ddpdoctor.stack.resume import best_weights, check_system
from ddpdoctor.stack.trainer import fit

log = logging.getLogger(__name__)
SYSTEM = "detection"


class DetectionConfig(TrainingConfig, CanvasConfig, ModelConfig):
    """All options of a training of a detector."""

    batch_size: PositiveInt = 16
    """Images per rank: one optimizer step sees batch_size x ranks x accumulation_steps."""
    n_epochs: Annotated[PositiveInt, Flags(("epochs",))] = 24
    """How often every image is seen."""
    stop_epoch: PositiveInt = 16
    """The epoch, counted from 0, at which strong augmentation stops and stage 2 begins."""
    ema_restart_decay: float = Field(default=0.98, ge=0, lt=1)
    """Decay of the averaged weights from stage 2 on."""

    @model_validator(mode="after")
    def _there_are_two_stages(self) -> Self:
        if self.stop_epoch >= self.n_epochs:
            raise ValueError(
                f"stop_epoch {self.stop_epoch} is not below n_epochs {self.n_epochs}: there would "
                "be no second stage"
            )
        return self


def train_on_digits(
    *,
    distributed: bool | None = None,
    backend: Backend = "auto",
    **options: Any,
) -> DetectionResult:
    """Train a detector of digits.

    `options` are the fields of DetectionConfig, such as batch_size (images per rank), n_epochs,
    stop_epoch, ema_decay, ema_restart_decay, n_images, random_seed, resume and output_dir.
    `distributed` and `backend` are those of `process_group.session`: left out, the launcher
    decides.

    The output folder holds best_stg1.pth, best_stg2.pth and last.pth beside the last few
    checkpoints. Returns the result on every rank; rank 0 also writes it there. Raises a StackError,
    the same one on all ranks, for anything that the caller can cure.
    """
    config = parse(DetectionConfig, options)
    with session(distributed=distributed, backend=backend) as world:
        return _train(config, world)


def load_model(path: str | Path) -> Detector:
    """Return the model of a checkpoint, ready to predict, in this one process.

    It does not matter how many ranks wrote it. Raises CheckpointError if it cannot be read.
    """
    state = checkpoint.load(Path(path), World(0, 0, 1, torch.device("cpu"), None))
    check_system(state, SYSTEM, Path(path))
    settings = state["settings"]
    size = ModelConfig(**{name: settings[name] for name in ModelConfig.model_fields})
    model = Detector(size, len(CLASSES))
    model.load_state_dict(best_weights(state))
    return model.eval()


def average_precision(
    net: nn.Module,
    scenes: Sequence[Scene],
    batch_size: int,
    world: World,
    thresholds: Sequence[float] = THRESHOLDS,
) -> float:
    """Return the mean average precision, the same number on every rank. A collective.

    Each rank looks at its share of the images; then all have all detections, none of them twice.
    """
    detections = predict_ragged(net, scenes, collate, detect, 6, batch_size, world)
    return mean_average_precision(detections, _truths(scenes), thresholds)


def mean_boxes(train: Sequence[Scene]) -> torch.Tensor:
    """Return the same detections for any image: each class at its mean box, by its frequency."""
    boxes = torch.cat([scene.boxes for scene in train]).double()
    labels = torch.cat([scene.labels for scene in train])
    rows = [
        torch.cat(
            [
                torch.tensor([(labels == label).double().mean(), label]),
                boxes[labels == label].mean(dim=0),
            ]
        )
        for label in sorted(set(labels.tolist()))
    ]
    return torch.stack(rows) if rows else torch.zeros(0, 6)


def _train(config: DetectionConfig, world: World) -> DetectionResult:
    started = time.perf_counter()
    prepare_folder(config.output_dir, world)
    with together(world):
        need("scipy.optimize", "detection")
        parts = load_digits(config.random_seed)
        lengths = _lengths(config.n_images)
        train, validation, test = (
            Canvases(digits, length, [config.random_seed, number])
            for number, (digits, length) in enumerate(zip(parts, lengths, strict=True))
        )
        data = _digest([*train, *validation, *test])
    require_equal(data, "images", world)
    if world.is_main:
        log.info("train %d, validation %d, test %d images", *lengths)
    batch_size = config.plan(world.world_size).batch_size

    # The same seed on every rank: DDP would hand out rank 0's weights anyway, but a lone process
    # and four ranks are to begin with the same ones.
    torch.manual_seed(config.random_seed)
    model = Detector(config, len(CLASSES))
    folder, stop = config.output_dir, config.stop_epoch
    with progress_bar(world) as show:
        progress = fit(
            model,
            AugmentedCanvases(train, stop, config.random_seed),
            collate=collate,
            loss_sum=_loss_sum,
            validate=lambda net: average_precision(net, validation, batch_size, world),
            config=config,
            settings={"system": SYSTEM, **config.decisive(), "data": data},
            world=world,
            show=show,
            higher_is_better=True,
            between_epochs=two_stages(
                folder, stop, config.n_epochs, config.ema_restart_decay, world
            ),
        )

    metrics = [epoch.metric for epoch in progress.history]
    best_stage = 1 if progress.best_epoch < stop else 2
    best = folder / BEST[best_stage]
    model.load_state_dict(best_weights(checkpoint.load(best, world)))
    guess = mean_boxes(train)
    result = DetectionResult(
        n_train=len(train),
        n_validation=len(validation),
        n_test=len(test),
        world_size=world.world_size,
        stop_epoch=stop,
        best_epoch=progress.best_epoch,
        best_stage=best_stage,
        validation_map=progress.best_metric,
        test_map=average_precision(model, test, batch_size, world),
        test_map50=average_precision(model, test, batch_size, world, [0.5]),
        baseline_map=mean_average_precision([guess] * len(test), _truths(test)),
        refreshes=refreshes(metrics[:-1], stop),
        history=progress.history,
        options=config.model_dump(mode="json"),
        checkpoint=best,
        seconds=time.perf_counter() - started,
    )
    with together(world):
        if world.is_main:
            result.write(folder)
    return result


def _loss_sum(net: nn.Module, batch: Batch) -> torch.Tensor:
    logits, boxes = net(batch)
    return detection_loss_sum(logits, boxes, batch)


def _lengths(n_images: int) -> tuple[int, int, int]:
    tenth = n_images // 10
    return n_images - 2 * tenth, tenth, tenth


def _truths(scenes: Sequence[Scene]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(scene.boxes, scene.labels) for scene in scenes]


def _digest(scenes: Sequence[Scene]) -> str:
    result = hashlib.sha256()
    for scene in scenes:
        for tensor in (scene.image, scene.boxes, scene.labels):
            result.update(tensor.numpy().tobytes())
    return result.hexdigest()
