"""SIGTERM, which schedulers send before they kill: a wish to end, heeded between two steps."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """Whether this rank was asked to end."""

    def __init__(self) -> None:
        self.received = False


@contextmanager
def on_sigterm() -> Iterator[StopRequest]:
    """Note SIGTERM, for the length of the block, instead of dying of it. A second one kills.

    A rank that left by itself would leave its peers waiting: they must hear of it first, in a
    reduction that all of them take part in.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request  # only the main thread may handle signals
        return

    def note(number: int, frame: FrameType | None) -> None:
        request.received = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield request
    finally:
        signal.signal(signal.SIGTERM, before)


def heed_only_the_parent(worker: int) -> None:
    """Keep a data-loader worker alive when SIGTERM is sent to all processes of a job.

    Schedulers do that. The rank still needs its workers to come to the end of its step; a SIGTERM
    by the rank itself, which is how it ends a worker, is heeded.
    """
    rank = multiprocessing.parent_process()  # a worker's parent may be a fork server (Python 3.14)
    parent = rank.pid if rank is not None else os.getppid()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    def wait() -> None:
        while True:
            if signal.sigwaitinfo({signal.SIGTERM}).si_pid == parent:
                os._exit(0)

    threading.Thread(target=wait, daemon=True).start()
