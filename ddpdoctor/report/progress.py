"""What a person sees while `check` runs: one line on stderr, gone when it ends."""

from __future__ import annotations

import sys
from typing import TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Column

from ddpdoctor.catalog import Verdict


class LiveProgress:
    """A bar with the variants that are running now; silent where the stream is no terminal."""

    def __init__(self, total: int, *, colour: bool, stream: TextIO | None = None) -> None:
        stream = stream or sys.stderr
        self._progress = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
            ),
            console=Console(file=stream, no_color=not colour),
            transient=True,
            expand=True,
            disable=not stream.isatty(),
        )
        self._task = self._progress.add_task("starting the ranks", total=total)
        self._running: dict[tuple[str, str], None] = {}

    def __enter__(self) -> LiveProgress:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def on_start(self, code: str, variant: str) -> None:
        """A variant is being launched."""
        self._running[code, variant] = None
        self._show()

    def on_verdict(self, verdict: Verdict) -> None:
        """A variant has its verdict."""
        self._running.pop((verdict.code, verdict.variant), None)
        self._progress.advance(self._task)
        self._show()

    def _show(self) -> None:
        now = ", ".join(f"{code} {variant}" for code, variant in self._running)
        self._progress.update(self._task, description=now)
