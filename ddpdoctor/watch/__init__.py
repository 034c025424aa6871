"""Lives inside a rank and writes down what happened, for whoever reads the run directory.

It imports `evidence` and nothing else of the package. It raises nothing into the job, prints
nothing into it and adds no collective. Everything it learns goes through one `Log`, one line an
event, so that what was written before a SIGKILL is readable.
"""

from __future__ import annotations

import os
from pathlib import Path

from ddpdoctor.evidence import LOG_NAME
from ddpdoctor.watch import collectives, data, exceptions, files, heartbeat, wrappers
from ddpdoctor.watch.log import Log

_log: Log | None = None


def start(run_dir: Path, rank: int, world_size: int) -> None:
    """Watch this process as `rank` from now on; its log is written to `run_dir`.

    torch must have been imported. To be called once per process, before the job's own code.
    """
    global _log
    import torch

    log = Log(run_dir / LOG_NAME.format(rank=rank))
    log.write("start", pid=os.getpid(), torch=str(torch.__version__), world_size=world_size)
    note_unused = wrappers.install(log)
    exceptions.install(log, note_unused)
    files.install(log)
    data.install(log)
    pending = collectives.install(log)
    heartbeat.start(log, pending)
    _log = log


def exiting() -> None:
    """Note that the interpreter begins to exit: what is issued from here on comes from atexit."""
    if _log is not None:
        _log.exiting = True
        _log.write("exiting")
