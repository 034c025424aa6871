"""How ranks end, seen by somebody who is not their parent."""

from __future__ import annotations

import contextlib
import fcntl
import os
import queue
import selectors
import struct
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic, sleep

from ddpdoctor.evidence import noted_deaths

_PATIENCE = 0.5
"""Seconds that a parent gets to say how its child ended."""

_PIDFD_GET_INFO = 0xC040FF0B
"""_IOWR(0xFF, 11, struct pidfd_info), as <linux/pidfd.h> has it."""
_PIDFD_INFO = struct.Struct("=2Q11Ii")
"""Its first version, of 64 bytes: mask, cgroup, eleven ids, exit status."""
_PIDFD_INFO_EXIT = 1 << 3


@dataclass(frozen=True)
class Death:
    """The end of a process."""

    pid: int
    time: float
    """When it ended; if it was gone already, and nobody told how, when it was last seen."""
    code: int | None
    """Its exit code, -n if signal n ended it; None if nobody knows."""
    noticed: float = field(default_factory=monotonic)


class Deaths:
    """Watches processes that are not our children.

    Their status is read while they are zombies, by a thread of its own, for their parent is about
    to take it away. Where it was quicker, a kernel from 6.15 on still tells, or the watch in the
    parent has written the status down.
    """

    def __init__(self, run_dir: Path | None) -> None:
        self._run_dir = run_dir
        self._selector = selectors.DefaultSelector()
        self._known: set[int] = set()
        self._new = queue.SimpleQueue[Death]()
        self._held: list[Death] = []
        self._closed = False
        threading.Thread(target=self._watch, name="deaths", daemon=True).start()

    def watch(self, pid: int, seen: float) -> None:
        """Watch this process from now on; one that is gone already died after it was last seen."""
        if pid not in self._known and not self.foresee(pid):
            self._known.add(pid)
            self._new.put(Death(pid, seen, None))

    def foresee(self, pid: int) -> bool:
        """Watch a process that may become a rank; false if there is none of this number."""
        if pid in self._known:
            return True
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        except OSError:  # this kernel has none: look now and then
            threading.Thread(target=self._look_for, args=(pid,), daemon=True).start()
        else:
            self._selector.register(descriptor, selectors.EVENT_READ, pid)
        self._known.add(pid)
        return True

    def close(self) -> None:
        """Watch no more."""
        self._closed = True

    def taken(self) -> list[Death]:
        """The deaths since the last call, in their order."""
        dead = [*self._held, *(self._new.get() for _ in range(self._new.qsize()))]
        if any(death.code is None for death in dead):
            told = noted_deaths(self._run_dir) if self._run_dir is not None else {}
            dead = [
                replace(d, code=told[d.pid], time=d.noticed)
                if d.code is None and d.pid in told
                else d
                for d in dead
            ]
        dead.sort(key=lambda death: death.time)
        # In their order: what comes after an unknown death may be its consequence.
        patience = monotonic() - _PATIENCE
        unknown = (n for n, d in enumerate(dead) if d.code is None and d.noticed > patience)
        ready = next(unknown, len(dead))
        self._held = dead[ready:]
        return dead[:ready]

    def _watch(self) -> None:
        while not self._closed:
            if not self._selector.get_map():
                sleep(0.02)
                continue
            for key, _ in self._selector.select(timeout=1.0):
                self._new.put(Death(key.data, monotonic(), _code(key.data, key.fd)))
                self._selector.unregister(key.fd)
                os.close(key.fd)

    def _look_for(self, pid: int) -> None:
        while Path(f"/proc/{pid}").exists():
            sleep(0.05)
        self._new.put(Death(pid, monotonic(), None))


def _code(pid: int, descriptor: int) -> int | None:
    """The exit code of a process that has ended; None if it is not to be had any more."""
    with contextlib.suppress(OSError, ValueError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        if fields[0] in "ZX":
            return os.waitstatus_to_exitcode(int(fields[-1]))
    with contextlib.suppress(OSError):
        asked = _PIDFD_INFO.pack(_PIDFD_INFO_EXIT, *(0,) * 13)
        told, *_, status = _PIDFD_INFO.unpack(fcntl.ioctl(descriptor, _PIDFD_GET_INFO, asked))
        if told & _PIDFD_INFO_EXIT:
            return os.waitstatus_to_exitcode(status)
    return None
