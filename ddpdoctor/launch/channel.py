"""One JSON document a line over a socket: what the doctor and its helpers say to each other."""

from __future__ import annotations

import json
import os
import socket
import weakref
from multiprocessing.connection import wait
from typing import Any

Message = dict[str, Any]


class Channel:
    """One end of a conversation. The other end's death, or `close`, is its end of file."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.ended = False
        self._buffer = b""
        _open.add(self)

    def fileno(self) -> int:
        """Readable when the other end has said something, or has ended."""
        return self.connection.fileno()

    def send(self, message: Message) -> None:
        """Say something; nothing happens if nobody is left to hear it."""
        self.send_line(json.dumps(message))

    def send_line(self, line: str) -> None:
        """Say something that is JSON already."""
        try:
            self.connection.sendall(line.encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            self.ended = True

    def receive(self, timeout: float | None = 0.0) -> list[str]:
        """The lines that have come, waiting up to `timeout` seconds (None: for ever) for the first.

        Empty after the timeout, and at the end, when `ended` is true.
        """
        if self.ended or not wait([self.connection], timeout):
            return []
        try:
            data = self.connection.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        self.ended = not data
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return [line.decode() for line in lines]

    def finish(self) -> None:
        """Say nothing more: the other end reads its end of file, and may still answer."""
        try:
            self.connection.shutdown(socket.SHUT_WR)
        except OSError:
            self.ended = True

    def close(self) -> None:
        """Leave the conversation."""
        self.connection.close()
        self.ended = True


_open: weakref.WeakSet[Channel] = weakref.WeakSet()


def _close_copies() -> None:
    for channel in list(_open):
        channel.connection.close()


# A process that the doctor forks would hold these sockets open, and a keeper would then not notice
# the doctor's death.
os.register_at_fork(after_in_child=_close_copies)
