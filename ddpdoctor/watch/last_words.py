"""Puts aside what torch's elastic launcher says at its end, where the doctor has more to say.

As the doctor ends it: the records of its own loggers, and the traceback of the signal that it got.
As ranks have failed: the traceback of that, if the doctor is still there, who tells it where no
verdict can stand in its place. What ranks print, also by way of the launcher (`--tee`), and what a
user's own hooks print is nobody's to put aside.
"""

from __future__ import annotations

import fcntl
import functools
import logging
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType, ModuleType, TracebackType
from typing import Any

from ddpdoctor.evidence import LAST_WORDS, SUMMARY
from ddpdoctor.watch.harmless import harmless

MODULE = "torch.distributed.elastic.multiprocessing.api"
"""Where elastic handles the signals that end it."""
_LAUNCHERS = {"torchrun", "torch.distributed.run", "torch.distributed.launch", "accelerate"}
_LOGGERS = "torch.distributed.elastic"


def may_come() -> bool:
    """Whether this process is a launcher by elastic, as far as its command line tells."""
    return not _LAUNCHERS.isdisjoint(Path(word).name for word in sys.orig_argv[1:4])


def install(run_dir: Path, module: ModuleType) -> None:
    """Act when the launcher hears the signal that ends it, or ends as ranks have failed."""
    api: Any = module
    original = api._terminate_process_handler
    files = {"ChildFailedError": run_dir / SUMMARY}

    @functools.wraps(original)
    def handle(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            _put_aside(run_dir / LAST_WORDS, files)
        original(number, frame)

    api._terminate_process_handler = handle
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = functools.partial(_tell, files)


@harmless
def _put_aside(file: Path, files: dict[str, Path]) -> None:
    if not file.exists():  # whoever ends this job, it is not the doctor
        return
    files["SignalException"] = file
    for handler in _handlers():
        handler.addFilter(functools.partial(_is_to_be_printed, file, handler))


def _handlers() -> list[logging.Handler]:
    """Those that print what elastic's loggers say."""
    found: list[logging.Handler] = []
    logger: logging.Logger | None = logging.getLogger(f"{_LOGGERS}.agent.server.api")
    while logger is not None:
        found += logger.handlers
        logger = logger.parent if logger.propagate else None
    return [each for each in found if getattr(each, "stream", None) is sys.stderr]


def _is_to_be_printed(file: Path, handler: logging.Handler, record: logging.LogRecord) -> bool:
    if not record.name.startswith(_LOGGERS):
        return True
    return not _written(file, f"{handler.format(record)}\n")


def _tell(
    files: dict[str, Path],
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
) -> None:
    """Print what nobody has caught, unless it is elastic's and `files` has one for it."""
    told = "".join(traceback.format_exception(kind, error, trace))
    file = files.get(kind.__name__) if kind.__module__.startswith(_LOGGERS) else None
    if file is None or not _is_taken(file) or not _written(file, told):
        sys.__excepthook__(kind, error, trace)


def _is_taken(file: Path) -> bool:
    """Whether the doctor takes what is put there: the summary it takes only as long as it lives."""
    if file.name != SUMMARY:
        return True
    try:
        with file.open("rb") as summary:
            fcntl.flock(summary, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # the doctor has it
        return True
    except OSError:
        return False
    return False


def _written(file: Path, text: str) -> bool:
    try:
        with file.open("a", encoding="utf-8") as last:
            last.write(text)
    except OSError:
        return False
    return True
