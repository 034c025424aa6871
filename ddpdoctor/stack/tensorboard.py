"""The curves of a training for TensorBoard, where it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ddpdoctor.stack.config import TrainingConfig
from ddpdoctor.stack.extras import need
from ddpdoctor.stack.outcome import together
from ddpdoctor.stack.process_group import World
from ddpdoctor.stack.resume import Epoch


@contextmanager
def curves(config: TrainingConfig, world: World) -> Iterator[Callable[[Epoch], None]]:
    """Write each epoch's record that is handed to what is yielded. For all ranks; rank 0 writes.

    Raises MissingExtraError on all ranks where rank 0 has no tensorboard.
    """
    with together(world):
        if config.tensorboard and world.is_main:
            need("tensorboard", "tensorboard")
    if not config.tensorboard or not world.is_main:
        yield lambda record: None
        return
    from torch.utils.tensorboard import SummaryWriter

    writers: list[SummaryWriter] = []

    def write(record: Epoch) -> None:
        if not writers:
            # What an attempt before this one wrote of later epochs is to be forgotten.
            folder = str(config.output_dir / "tensorboard")
            writers.append(SummaryWriter(folder, purge_step=record.epoch))
        scalars = {
            "loss": record.train_loss,
            "metric": record.metric,
            "learning rate": record.learning_rate,
            "seconds": record.seconds,
            **{f"seconds/{name}": seconds for name, seconds in record.phases.items()},
        }
        for name, value in scalars.items():
            writers[0].add_scalar(name, value, record.epoch)
        writers[0].flush()

    try:
        yield write
    finally:
        for writer in writers:
            writer.close()
