"""The watch over one process: all that listens, and the log it writes to."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from ddpdoctor.evidence import LOG_NAME, boot
from ddpdoctor.watch import (
    arguments,
    collectives,
    data,
    exceptions,
    files,
    heartbeat,
    joining,
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
            pid=os.getpid(),
            boot=boot(),
            host=os.uname().nodename,
            agent=os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else 0,
            parent=_parent(),
            wall=time.time(),
            torch=str(torch.__version__),
            python=sys.version.split()[0],
            world_size=world_size,
        )
        heartbeat.start(self.log, self._pending)


@harmless
def _parent() -> int:
    """The process that has started this one by multiprocessing and waits for it as it exits."""
    import multiprocessing

    parent = multiprocessing.parent_process()
    waits = parent is not None and not multiprocessing.current_process().daemon
    return parent.pid or 0 if parent is not None and waits else 0
