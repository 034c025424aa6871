"""What a rank loses to the other work of its machine: time in which it could run, and got no CPU.

The kernel counts it for each thread (schedstat: proc/self/task/*/schedstat, the second number).
What takes long only by that says nothing of the network or the CPU that is measured.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

_THREADS = Path("/proc/self/task")
_LEAST = 0.01
"""Of a time that other work has drawn out, at least this part is its own."""


def kept_waiting() -> float:
    """Seconds so far, of this thread and those of torch; 0 where the kernel does not say."""
    others = {one.native_id for one in threading.enumerate()} - {threading.get_native_id()}
    with suppress(OSError):
        threads = [one for one in _THREADS.iterdir() if int(one.name) not in others]
        return sum(map(_waited, threads))
    return 0.0


def kept_computing() -> float:
    """The same of this thread alone, which computes: those that carry messages do not keep it."""
    return _waited(Path("/proc/thread-self"))


def _waited(thread: Path) -> float:
    with suppress(OSError, ValueError, IndexError):  # it has just ended, or nobody counts
        return int((thread / "schedstat").read_bytes().split()[1]) / 1e9
    return 0.0


def without(waited: float, seconds: float) -> float:
    """The least that it can have taken: as if nothing had gone on while somebody was waiting."""
    return max(seconds - waited, _LEAST * seconds)
