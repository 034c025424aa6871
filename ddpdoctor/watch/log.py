"""The file that a rank writes its events to."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from ddpdoctor.evidence import CUT_SHORT, KINDS
from ddpdoctor.watch.averages import Averages
from ddpdoctor.watch.places import Frame, as_frame, is_users, outwards

LIMIT = 12 << 20
"""Bytes of a log before it is begun anew. Beside the new one, the old lives for a moment."""
LASTING_LIMIT = 3 << 20
"""Bytes of what a new log begins with: 16 MB a rank are never exceeded."""

_WAYS = 2048
_EARLY_LIMIT = 2000
_ANEW = b'{"k":"anew","t":0}\n'


class Log:
    """Appends one JSON object a line.

    Each line is one write to a file opened for appending, so lines of several threads do not mix
    and a SIGKILL loses nothing that was written. A write that fails (full disk, closed descriptor)
    ends the log and never the job; the file is then made read-only, which needs no room, so that
    nobody takes what is missing for what was not done. A forked child (a data-loader worker) is not
    this rank: there the log is silent, unless it is opened anew because the child joins as a rank
    of its own.

    Until `open`, lines are kept in memory: a process learns only later that it is a rank, or never.
    A log that reaches LIMIT is begun anew with all lines but those that only tell what passed
    (collectives, heartbeats); `evidence.RankReader` follows.
    """

    def __init__(self) -> None:
        self.exiting = False
        self.steps = 0
        """Optimizer steps of this process."""
        self.samples = 0
        """Of the batch that was drawn last; 0 where that is not known."""
        self.forwards = 0
        """Forward passes of wrappers that have begun, to build a graph."""
        self.trainer: int | None = None
        """The thread that wraps models and steps, once one has."""
        self.exchanged = 0
        """Numbers that it has given to other ranks, for them to have as they are."""
        self.summing: Callable[[Any, Any], None] | None = None
        """Is to hear of what is about to be summed up over a group."""
        self.looking_at_groups = threading.Lock()
        """Held while a thread that is not the job's holds process groups."""
        self.destroys_groups = False
        """None may be held now: who holds one last frees it, and may wait in there for ever."""
        self.in_join = False
        """It is inside of `Join`."""
        self.mixed: list[tuple[str, Frame | None]] | None = None
        """While a pass over a loader begins: the states of generators that the shuffles come from,
        and the lines that shuffle.
        """
        self.dealing: set[Frame] = set()
        """The lines that shuffled as a pass over a loader began."""
        self.remixed: tuple[str, Frame, int | None] | None = None
        """Such a line has shuffled again since the last batch: from which state, and its way."""
        self.summed = 0
        """So many numbers with a graph are looked at when read, as a sum of losses was made."""
        self.averages = Averages()
        """Of numbers that were read one by one."""
        self.rows: dict[int, str] = {}
        """By how many rows one has, a parameter of a wrapped model."""
        self.issued = 0
        """Collectives, ever."""
        self.gradients: dict[tuple[float, ...], str] = {}
        """The first numbers of some gradients as the latest backward pass has left them, and whose
        they are: without a DDP, before a step that is looked at, and until the next one.
        """
        self._path: Path | None = None
        self._fd = -1
        self._inode: tuple[int, int] | None = None
        self._size = 0
        # A signal handler of the job's may issue a collective while its main thread writes.
        self._lock = threading.RLock()
        self._ways: dict[tuple[int, ...], int] = {}
        self._codes: list[CodeType] = []
        self.passes: Callable[[], list[tuple[int, int, int]]] = list
        """Passes over loaders that are not over: loader, number, batches drawn."""
        self.wrappers: list[weakref.ref[Any]] = []
        """The DDPs that were built, by their numbers."""
        self._early: deque[tuple[str, bytes]] | None = deque(maxlen=_EARLY_LIMIT)
        self._later: deque[dict[str, Any]] = deque()
        self._lasting: list[bytes] = []
        self._lasting_size = 0
        os.register_at_fork(after_in_child=self._after_fork)

    @property
    def is_open(self) -> bool:
        """Whether this process is known as a rank."""
        return self._path is not None

    def open(self, path: Path, **start: Any) -> None:
        """Begin to write to `path`, with `start` as the first event. Raises OSError."""
        self._path = path
        self._fd, self._inode = _open(path)
        self._size = os.fstat(self._fd).st_size
        early, self._early = self._early, None
        self.write("start", **start)
        for kind, line in early or ():
            self._append(kind, line)

    def write(self, kind: str, **fields: Any) -> None:
        """Append an event that happened now."""
        event = _now(kind, fields)
        self.write_rest()
        self._write(event)

    def write_later(self, kind: str, **fields: Any) -> None:
        """Append an event that happened now, when the next one is or the heart beats.

        To write is to let other threads run, and so to undo a race that there is without us.
        """
        self._later.append(_now(kind, fields))

    def write_rest(self) -> None:
        """Append what was left for later."""
        with self._lock:
            while self._later:
                self._write(self._later.popleft())

    def _write(self, event: dict[str, Any]) -> None:
        if self._early is None and self._fd < 0:
            return
        line = json.dumps(event, separators=(",", ":"), default=str).encode() + b"\n"
        if self._early is not None:
            self._early.append((event["k"], line))
        else:
            self._append(event["k"], line)

    def way(self, frame: FrameType | None) -> int | None:
        """The number of the user's frames that lead here; a way that is new is written down.

        Frames are told apart by code and line, so that a call in a loop costs a look-up.
        """
        key: list[Any] = []
        each = frame
        while each is not None:
            if is_users(code := each.f_code):
                key += (id(code), each.f_lineno)
            each = each.f_back
        found = self._ways.get(named := tuple(key))
        if found is None and len(self._ways) < _WAYS:
            found = self._ways[named] = len(self._ways)
            frames = [each for each in outwards(frame) if is_users(each.f_code)]
            # Kept alive, so that no id is mistaken for another.
            self._codes += (each.f_code for each in frames)
            self.write("way", number=found, frames=[as_frame(each) for each in frames[::-1]])
        return found

    def silence(self) -> None:
        """Write no more, as what this process does is no longer this rank's doing."""
        self._fd = -1
        self._early = None

    def _after_fork(self) -> None:
        self._lock, self.looking_at_groups = threading.RLock(), threading.Lock()
        if self.is_open:
            self.silence()
            self._path = None
            self._ways, self._codes = {}, []
            self._lasting, self._lasting_size = [], 0
            self._later.clear()

    def _append(self, kind: str, line: bytes) -> None:
        with self._lock:
            if KINDS[kind].lasts and self._lasting_size + len(line) < LASTING_LIMIT:
                self._lasting.append(line)
                self._lasting_size += len(line)
            try:
                self._size += self._put(line)
                if self._size > LIMIT:
                    self._begin_anew()
            except OSError:
                self._cut_short()

    def _put(self, line: bytes) -> int:
        assert self._path is not None
        if _identity(self._fd) != self._inode:  # the job has closed descriptors it does not know
            self._fd, self._inode = _open(self._path)
        return _write(self._fd, line)

    def _cut_short(self) -> None:
        with contextlib.suppress(OSError):
            is_ours = _identity(self._fd) == self._inode
            if is_ours and stat.S_ISREG(os.fstat(self._fd).st_mode):
                os.fchmod(self._fd, CUT_SHORT)
        self.silence()

    def _begin_anew(self) -> None:
        assert self._path is not None
        draft = self._path.with_suffix(".new")
        draft.unlink(missing_ok=True)
        fd, inode = _open(draft)
        self._size = sum(_write(fd, line) for line in (_ANEW, *self._lasting))
        os.rename(draft, self._path)  # noqa: PTH104 - what pathlib calls is watched for renames
        before, self._fd, self._inode = self._fd, fd, inode
        os.close(before)


def _now(kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {"k": kind, "t": time.monotonic(), **fields}


def _open(path: Path) -> tuple[int, tuple[int, int] | None]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    fd = os.open(path, flags, 0o644)
    return fd, _identity(fd)


def _write(fd: int, line: bytes) -> int:
    """Write all of it. Raises OSError where there is room for a part."""
    if (written := os.write(fd, line)) < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return written


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino
