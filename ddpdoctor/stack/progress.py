"""A progress bar: on standard error, of rank 0, and only where a person is watching."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from ddpdoctor.stack.process_group import World
from ddpdoctor.stack.resume import Epoch


class Show(Protocol):
    """What the trainer tells as it goes."""

    def step(self, done: float) -> None:
        """After each optimizer step: the share of the training that is done, from 0 to 1."""

    def epoch(self, record: Epoch) -> None:
        """After each epoch."""


@contextmanager
def progress_bar(world: World) -> Iterator[Show]:
    """Show a bar for the length of the block, or nothing at all."""
    bar = Progress(
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
        console=Console(stderr=True),
        disable=not (world.is_main and sys.stderr.isatty()),
        transient=True,
    )
    with bar:
        yield _Bar(bar)


class _Bar:
    def __init__(self, bar: Progress) -> None:
        self.bar = bar
        self.task = bar.add_task("", total=1.0)

    def step(self, done: float) -> None:
        self.bar.update(self.task, completed=done)

    def epoch(self, record: Epoch) -> None:
        text = f"epoch {record.epoch + 1}: loss {record.train_loss:.4f}, error {record.metric:.4f}"
        self.bar.update(self.task, description=text)
