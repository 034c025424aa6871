"""The watch over one process: all that listens, and the log it writes to."""

from __future__ import annotations

from pathlib import Path

from ddpdoctor.evidence import LOG_NAME
from ddpdoctor.watch import (
    arguments,
    collectives,
    data,
    exceptions,
    files,
    heartbeat,
    joining,
    launching,
    reads,
    shuffles,
    states,
    stores,
    warned,
    wrappers,
)
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log


class Watch:
    """The watch over this process, over all that torch does in it.

    To be made once, after torch's import.
    """

    def __init__(self) -> None:
        self.log = log = Log()
        self._pending = collectives.install(log)
        joining.install(log)
        before_exception = wrappers.install(log)
        exceptions.install(log, before_exception)
        arguments.install(log)
        files.install(log)
        warned.install(log)
        states.install(log)
        data.install(log)
        harmless(shuffles.install)(log)
        harmless(reads.install)(log)
        harmless(stores.install)(log)

    def begin(self, run_dir: Path, rank: int, world_size: int) -> None:
        """Begin to write: this process is a rank. Raises OSError."""
        import torch

        self.log.open(
            run_dir / LOG_NAME.format(rank=rank),
            **launching.process(),
            torch=str(torch.__version__),
            world_size=world_size,
        )
        heartbeat.start(self.log, self._pending)
