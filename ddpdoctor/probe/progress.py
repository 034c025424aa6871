"""How far a probe is: a bar on a terminal, or a file that the process that started us reads."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

STAGES = ("joining", "checking values", "links", "pace", "bandwidth", "done")


class Progress:
    """Where one rank is. `file` gets the stage; without one, rank 0 draws a bar on stderr."""

    def __init__(self, rank: int, file: Path | None = None) -> None:
        self._file = file
        self._draws = file is None and rank == 0 and sys.stderr.isatty()
        self._open = ExitStack()
        self._bar: Bar | None = None
        self.stage = STAGES[0]
        self.detail = ""

    def tell(self, stage: str, detail: str = "") -> None:
        """This rank is at this stage now."""
        self.stage, self.detail = stage, detail
        if self._file:
            self._file.write_text(f"{stage}\t{detail}", encoding="utf-8")
        if self._bar:
            self._bar.update(
                self._bar.task_ids[0], completed=STAGES.index(stage), description=stage
            )

    @property
    def words(self) -> str:
        """As in "bandwidth (all_reduce of 4 MiB)"."""
        return f"{self.stage} ({self.detail})" if self.detail else self.stage

    def __enter__(self) -> Self:
        if self._draws:
            self._bar = bar()
            self._open.enter_context(self._bar)
        self.tell(self.stage)
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()


def bar() -> Bar:
    """A bar over the stages, on stderr, which is gone at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description:16}"), BarColumn(), TimeElapsedColumn())
    made = RichProgress(
        *columns,
        console=Console(stderr=True, no_color=bool(os.environ.get("NO_COLOR"))),
        transient=True,
    )
    made.add_task(STAGES[0], total=len(STAGES) - 1)
    return made


def read(file: Path) -> tuple[str, str]:
    """Stage and detail that a rank told last; ("", "") if it has told nothing."""
    try:
        stage, _, detail = file.read_text(encoding="utf-8").partition("\t")
    except OSError:
        return "", ""
    return stage, detail
