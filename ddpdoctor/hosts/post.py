"""The doctor's end of a way to the others: never blocks, and forgets rather than grows."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from typing import BinaryIO, Protocol, cast

from ddpdoctor.hosts import courier
from ddpdoctor.hosts.messages import Meeting

_ENVIRONMENT = {
    "DDPDOCTOR_DISABLE": "1",
    "OMP_NUM_THREADS": "1",
    "TORCH_CPP_LOG_LEVEL": "ERROR",  # it would tell of each wait that ends
}
_MOST_WAITING = 1024
"""Messages that may wait to be sent; with more, the connection counts as broken."""


class Post(Protocol):
    """Sends and receives messages."""

    is_full: bool
    """Something that was to be sent is lost."""

    def send(self, message: bytes) -> None:
        """Hand a message over, if one can still be taken."""

    def taken(self) -> list[bytes]:
        """What has come since the last call; of no bytes where the connection is new."""

    def close(self) -> None:
        """Send no more; what was handed over is still sent."""


class ThreadedPost(ABC):
    """By two threads, which may block where a doctor may not."""

    def __init__(self) -> None:
        self.is_full = False
        self._sent = queue.Queue[bytes | None](_MOST_WAITING)
        self._received = queue.Queue[bytes](_MOST_WAITING)

    def _start(self) -> None:
        for carry in (self._carry_out, self._carry_in):
            threading.Thread(target=carry, name="post", daemon=True).start()

    def send(self, message: bytes) -> None:
        """Hand it to the thread that sends."""
        try:
            self._sent.put_nowait(message)
        except queue.Full:
            self.is_full = True

    def taken(self) -> list[bytes]:
        """What the thread that receives has brought."""
        found = []
        with contextlib.suppress(queue.Empty):
            while True:
                found.append(self._received.get_nowait())
        return found

    def close(self) -> None:
        """End the thread that sends, after what it has."""
        with contextlib.suppress(queue.Full):
            self._sent.put_nowait(None)

    @abstractmethod
    def _carry_out(self) -> None: ...

    @abstractmethod
    def _carry_in(self) -> None: ...


class StorePost(ThreadedPost):
    """By a courier, to a store on the first host. Raises OSError if none can be started."""

    def __init__(self, meeting: Meeting, *, first: bool) -> None:
        super().__init__()
        self._process = subprocess.Popen(
            [sys.executable, "-m", courier.__name__],
            env={**os.environ, **_ENVIRONMENT},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is not meant for it
        )
        order = {"host": meeting.host, "ports": meeting.ports, "greeting": meeting.greeting}
        order["drawer"] = meeting.drawer
        self.send(json.dumps({**order, "first": first}).encode())
        self._start()

    def _carry_out(self) -> None:
        with contextlib.suppress(OSError), cast("BinaryIO", self._process.stdin) as stream:
            while (message := self._sent.get()) is not None:
                courier.write(stream, message)

    def _carry_in(self) -> None:
        with cast("BinaryIO", self._process.stdout) as stream:
            while (message := courier.read(stream)) is not None:
                self._received.put(message)
        self._process.wait()
