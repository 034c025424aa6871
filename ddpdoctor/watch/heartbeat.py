"""Sees from a thread of its own that the main thread has stopped moving, and what it waits for."""

from __future__ import annotations

import sys
import threading
import time
from types import FrameType
from typing import Any

from ddpdoctor.watch.collectives import Pending
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import as_frame, outwards, users_frame

BEAT = 0.1
"""Seconds between two looks. A rank is called stuck after two looks that saw the same call idle."""

_BETWEEN_BUSY = 0.25
"""Seconds to the next look at a thread that was busy all the time: each look costs the job."""

_IDLE = 0.1
"""Share of a beat that a thread may spend on a CPU and still count as waiting."""

_QUIET = 1.0
"""Seconds without a collective after which the main thread is asked where it is, at 1, 2, 4, ..."""

_ALIVE = 1.0
"""Seconds between two signs of life. A rank that gives none is held by C code, or is stopped."""


def start(log: Log, pending: Pending) -> None:
    """Start the thread; it is a daemon and holds the GIL for some microseconds a beat."""
    main = threading.main_thread().ident
    assert main is not None
    heart = _Heart(log, pending, main)
    threading.Thread(target=heart.beat_on, name="ddpdoctor", daemon=True).start()


class _Heart:
    """What the looks at the main thread have shown so far."""

    def __init__(self, log: Log, pending: Pending, main: int) -> None:
        self._log, self._pending, self._main = log, pending, main
        self._issued = harmless(pending.issued)
        self._clock = time.pthread_getcpuclockid(main)
        self._seen: tuple[int, int] | None = None
        self._since = self._cpu = 0.0
        self._is_busy = False
        self._stuck: dict[str, int] | None = None
        self._counts: dict[str, int] | None = None
        self._counted = self._asked = 0.0
        self._told_alive = 0.0
        self._beats = self._waits = 0

    @harmless
    def beat_on(self) -> None:
        while True:
            time.sleep(_BETWEEN_BUSY if self._is_busy else BEAT)
            frame = sys._current_frames().get(self._main)
            if frame is None:
                return
            self._beat(frame)
            del frame

    def _beat(self, frame: FrameType) -> None:
        self._pending.write()
        now, here = time.monotonic(), (id(frame), frame.f_lasti)
        cpu, before = time.clock_gettime(self._clock), self._cpu
        self._is_busy = cpu - before > BEAT / 2
        self._cpu = cpu
        self._beats += 1
        self._waits += cpu - before < BEAT / 2 and _communicates(frame)
        issued = self._issued() or {}
        if here != self._seen or cpu - before >= _IDLE * BEAT:
            self._seen, self._since = here, now
            if self._stuck is not None:
                self._log.write("moved")
                self._stuck, self._counted = None, now
            self._note_work(frame, now, issued)
        elif self._stuck == issued:
            self._log.write("still")
        else:
            # Autograd's device threads may issue buckets while the main thread waits in backward.
            since = self._since if self._stuck is None else now
            self._stuck, self._counts, self._asked = issued, None, 0.0
            self._log.write("stuck", since=since, **self._told(frame, issued))
        self._tell_alive(now)

    def _note_work(self, frame: FrameType, now: float, issued: dict[str, int]) -> None:
        """Write where the main thread is that has not communicated for a while."""
        if issued != self._counts:
            if self._asked:
                self._log.write("moved")
            self._counts, self._counted, self._asked = issued, now, 0.0
        elif now - self._counted > max(_QUIET, 2 * self._asked) and self._counted:
            self._asked = now - self._counted
            stack = [as_frame(each) for each in outwards(frame)][::-1]
            place = users_frame(frame)
            self._log.write("working", since=self._counted, stack=stack, place=place)

    def _told(self, frame: FrameType, issued: dict[str, int]) -> dict[str, Any]:
        pending = self._pending
        return {
            "stack": [as_frame(each) for each in outwards(frame)][::-1],
            "place": users_frame(frame),
            "waiting": pending.outstanding(),
            "awaited": pending.awaited(),
            "issued": issued,
            "other_threads_communicate": bool(pending.threads - {self._main}),
        }

    def _tell_alive(self, now: float) -> None:
        if now - self._told_alive > _ALIVE:
            self._log.write("alive", waits=self._waits / self._beats, steps=self._log.steps)
            self._told_alive, self._beats, self._waits = now, 0, 0


def _communicates(frame: FrameType) -> bool:
    """Whether the main thread may be waiting for other ranks: in backward, or in a collective."""
    file = frame.f_code.co_filename
    return file.endswith(("/torch/autograd/graph.py", "/ddpdoctor/watch/collectives.py"))
