"""The way by a folder that the hosts share: each doctor appends to a file that it alone writes.

To append, and to open a file anew for each look, is what network file systems keep to: whoever
opens a file sees all that was written before its last close. Names are `first-` or `member-`, the
doctor's, and a number that goes up when the file has grown large and another is begun.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from ddpdoctor.hosts import courier
from ddpdoctor.hosts.messages import Meeting
from ddpdoctor.hosts.post import Post, ThreadedPost

_LOOK = 0.25
"""Seconds between two looks: each opens every file."""
_LARGEST = 1 << 28
"""Bytes of a file, before another is begun; what was told is told again then."""
_AT_ONCE = 1 << 24
_TO_SEE = 5.0
"""Seconds in which it shows whether the first doctor listens here."""
_TO_WRITE = 2.0
"""Seconds that the last message gets to be written."""


class FolderPost(ThreadedPost):
    """By files in a folder of the run's. Raises OSError if nothing can be written there."""

    def __init__(self, run_dir: Path, meeting: Meeting, *, first: bool) -> None:
        super().__init__()
        self._folder = run_dir / "doctors" / meeting.name
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._mine, self._theirs = ("first", "member") if first else ("member", "first")
        self._me = f"{self._mine}-{os.uname().nodename}-{os.getpid()}-{os.urandom(4).hex()}"
        self._number = self._size = 0
        self._places: dict[str, tuple[int, int]] = {}
        """By the name of a doctor: the number of its file that is read, and how far it was."""
        self._is_closed = threading.Event()
        self._is_written = threading.Event()
        self._path.touch()
        self._start()

    @property
    def _path(self) -> Path:
        return self._folder / f"{self._me}.{self._number}"

    def close(self) -> None:
        """Send no more, once what was handed over is written."""
        super().close()
        self._is_closed.set()
        self._is_written.wait(_TO_WRITE)

    def _carry_out(self) -> None:
        while (message := self._sent.get()) is not None:
            try:
                with self._path.open("ab") as file:
                    courier.write(file, message)
                    self._size = file.tell()
            except OSError:
                self.is_full = True
            if self._size > _LARGEST:
                self._path.unlink(missing_ok=True)
                self._number, self._size, self.is_full = self._number + 1, 0, True
        self._is_written.set()

    def _carry_in(self) -> None:
        while not self._is_closed.wait(_LOOK):
            with contextlib.suppress(OSError):
                for name in sorted(os.listdir(self._folder)):  # noqa: PTH208 - names alone
                    self._read(name)

    def _read(self, name: str) -> None:
        doctor, _, number = name.rpartition(".")
        if not doctor.startswith(f"{self._theirs}-") or not number.isdigit():
            return
        known = self._places.get(doctor)
        if known is None:
            self._received.put(b"")
        if known is None or int(number) > known[0]:
            known = int(number), 0
        elif int(number) < known[0]:
            return
        place = known[1]
        with (self._folder / name).open("rb") as file:
            file.seek(place)
            new = BytesIO(file.read(_AT_ONCE))
        while (message := courier.read(new)) is not None:
            self._received.put(message)
            place += len(message) + courier.HEAD
        self._places[doctor] = int(number), place


class EitherPost:
    """By the folder, if the first doctor is seen to listen there, and else by a store.

    The first doctor listens to both. Another one cannot know at once which will do: hosts may not
    see the same folder, or see late what is new in it.
    """

    def __init__(self, folder: Post, store: Callable[[], Post] | None, *, first: bool) -> None:
        self._open_store = store
        self._ways: list[Post] = [folder]
        self._first, self._began = first, time.monotonic()
        if first:
            self._add_store()

    @property
    def is_full(self) -> bool:
        """Something that was to be sent is lost."""
        return any(way.is_full for way in self._ways)

    @is_full.setter
    def is_full(self, value: bool) -> None:
        for way in self._ways:
            way.is_full = value

    def send(self, message: bytes) -> None:
        """Hand a message over, to all ways that may be the right one."""
        for way in self._ways:
            way.send(message)

    def taken(self) -> list[bytes]:
        """What has come since the last call, by the first way that has brought anything."""
        if self._first:
            return [message for way in self._ways for message in way.taken()]
        for way in self._ways:
            if found := way.taken():
                for other in self._ways:
                    if other is not way:
                        other.close()
                self._ways, self._open_store = [way], None
                return found
        if time.monotonic() - self._began > _TO_SEE:
            self._add_store()
        return []

    def close(self) -> None:
        """Send no more, once what was handed over is sent."""
        for way in self._ways:
            way.close()

    def _add_store(self) -> None:
        with contextlib.suppress(OSError):
            if self._open_store is not None:
                self._ways.append(self._open_store())
        self._open_store = None
