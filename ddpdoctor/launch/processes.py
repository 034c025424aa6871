"""What the standard library cannot do about processes on Linux: whose child is whose, and ends."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LEAST_SHARE = 1 / 6
_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent dies."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent dies, even if that has happened already.

    SIGKILL, because a rank inside C++ never gets to run the handler of anything milder.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def wake_with_parent() -> None:
    """Have the kernel continue this process when its parent dies, should it be stopped then.

    Not end it: it has processes and folders to clear away, and the thread of the parent that
    started it may end long before the parent does.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


class Children:
    """The children of this process, adopted ones included, and news of their deaths."""

    def __init__(self) -> None:
        self._signalled, self._signal = socket.socketpair()
        self._signalled.setblocking(False)
        self._signal.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._signal.fileno(), warn_on_full_buffer=False)

    def fileno(self) -> int:
        """Readable when a child may have died."""
        return self._signalled.fileno()

    def reap(self) -> Iterator[tuple[int, int]]:
        """Collect the dead: pid and wait status of each."""
        with contextlib.suppress(BlockingIOError):
            while self._signalled.recv(4096):
                pass
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                yield found

    def kill_all(self, patience: float = 5.0) -> dict[int, int]:
        """Kill every child, and every child of theirs once it is adopted, until none is left.

        Returns the wait status of each by pid. Gives up after `patience` seconds, for a process in
        an uninterruptible system call does not die: `left` then says which.
        """
        statuses: dict[int, int] = {}
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            statuses.update(self.reap())
            if not (pids := self.left()):
                break
            # All are stopped before one is killed, or a rank might live to complain of its peer.
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, number)
            time.sleep(0.001)
        _forget_shared_memory(statuses)
        return statuses

    def left(self) -> list[int]:
        """The children that have not been reaped."""
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return []  # the common case, without reading all of /proc
        return [child.pid for child in psutil.Process().children()]

    def disown(self) -> None:
        """Forget about children: this is a freshly forked child itself."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._signalled.close()
        self._signal.close()


def _forget_shared_memory(pids: Iterable[int]) -> None:
    """Remove what torch was about to share: it unlinks that itself, unless it is killed before.

    Nothing is in it yet. What has a size may be of another container's process of this number.
    """
    for pid in pids:
        for file in Path("/dev/shm").glob(f"torch_{pid}_*"):
            with contextlib.suppress(OSError):
                if file.stat().st_size == 0:
                    file.unlink()


def handles(pid: int, number: int) -> bool:
    """Whether the process has a handler of its own for a signal, so that it survives it."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as status:  # noqa: PTH123
        for line in status:
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def share(pids: Iterable[int]) -> float:
    """What processes got of the time in which their main threads could run; at least a sixth.

    All of it where none of them lives, and where the kernel does not count it (schedstat).
    """
    ran = waited = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            counts = Path(f"/proc/{pid}/schedstat").read_bytes().split()
            ran, waited = ran + int(counts[0]), waited + int(counts[1])
    return max(_LEAST_SHARE, ran / (ran + waited)) if waited else 1.0
