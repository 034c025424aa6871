"""Sees from a thread of its own that the training has stopped moving, and what it waits for.

What trains is mostly the main thread; Ray has another one for it.
Below, "main thread" means the one that trains.
"""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

from ddpdoctor.watch.collectives import Pending
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, as_frame, looks_at_others, outwards, users_place

BEAT = 0.1
"""Seconds between two looks. A rank is called stuck after two looks that saw the same call idle."""

_BETWEEN_BUSY = 0.25
"""Seconds to the next look at a thread that was busy all the time: each look costs the job."""

_IDLE = 0.1
"""Share of a beat that a thread may spend on a CPU and still count as waiting."""

_QUIET = 1.0
"""Seconds without a collective after which the main thread is asked where it is, at 1, 2, 4, ..."""

_AGAIN = 0.25
"""What a rank that stands still waits for is asked again once that lasts so much longer."""

_ALIVE = 1.0
"""Seconds between two signs of life. A rank that gives none is held by C code, or is stopped."""

_LAST_BEAT = 1.0
"""Seconds for which the end of the interpreter waits for a beat to be over."""


_hearts: list[tuple[_Heart, threading.Thread]] = []


def start(log: Log, pending: Pending) -> None:
    """Start the thread; it is a daemon and holds the GIL for some tens of microseconds a beat."""
    main = threading.main_thread().ident
    assert main is not None
    heart = _Heart(log, pending, main)
    thread = threading.Thread(target=heart.beat_on, name="ddpdoctor", daemon=True)
    thread.start()
    _hearts.append((heart, thread))


def end() -> None:
    """Beat no more: the interpreter is about to end, all that was registered with atexit is done.

    A thread that wants the GIL back after that is ended where it stands (CPython 3.11), and one
    that stands in torch then aborts the whole process: "terminate called without an active
    exception".
    """
    for heart, thread in _hearts:
        if thread.is_alive():  # not in a forked child
            heart.beating.acquire(timeout=_LAST_BEAT)


_Here = tuple[int, int, int]
"""Which frame a thread is in, where in it, and its turn: new frames may lie where old ones lay."""


@dataclass(slots=True)
class _Look:
    """Where the main thread was."""

    here: _Here
    stack: list[Frame]
    """Outermost first."""
    place: Frame | None
    communicates: bool
    """Whether it may be waiting for other ranks: in backward, or in a collective."""


class _Heart:
    """What the looks at the main thread have shown so far."""

    def __init__(self, log: Log, pending: Pending, main: int) -> None:
        self.beating = threading.Lock()
        """Held for the length of a beat."""
        self._log, self._pending, self._main = log, pending, main
        self._first = main
        self._issued, self._passes = harmless(pending.issued), harmless(log.passes)
        self._clock = time.pthread_getcpuclockid(main)
        self._seen: _Here | None = None
        self._since = self._cpu = 0.0
        self._is_busy = False
        self._stuck: dict[str, int] | None = None
        self._outstanding: list[tuple[Any, ...]] = []
        """What was told then to be outstanding."""
        self._due = 0.0
        """When it is asked again."""
        self._counts: dict[str, int] | None = None
        self._counted = self._asked = 0.0
        self._told_alive = 0.0
        self._beats = self._waits = 0

    @harmless
    def beat_on(self) -> None:
        while True:
            time.sleep(_BETWEEN_BUSY if self._is_busy else BEAT)
            with self.beating:
                self._pending.write()
                self._log.write_rest()
                self._choose()
                look = _look_at(self._main, self._turn())
                if look is None:
                    return
                self._beat(look)

    def _turn(self) -> int:
        return self._pending.turns.get(self._main, 0)

    def _choose(self) -> None:
        """Look at the thread that trains."""
        alive = _threads()
        chosen = self._log.trainer
        if chosen not in alive:
            others = self._pending.threads & alive
            lone = len(others) == 1 and self._first not in self._pending.threads
            chosen = others.pop() if lone else self._first
        if chosen != self._main and chosen in alive:
            self._main, self._seen = chosen, None
            self._clock = time.pthread_getcpuclockid(chosen)

    def _beat(self, look: _Look) -> None:
        now = time.monotonic()
        cpu, before = time.clock_gettime(self._clock), self._cpu
        self._is_busy = cpu - before > BEAT / 2
        self._cpu = cpu
        self._beats += 1
        self._waits += cpu - before < BEAT / 2 and look.communicates
        issued = self._issued() or {}
        if look.here != self._seen or cpu - before >= _IDLE * BEAT:
            self._seen, self._since = look.here, now
            self._note_move(now)
            self._note_work(look, now, issued)
        elif self._stuck == issued and now < self._due:
            self._log.write("still")
        else:
            self._ask(look, issued, now)
        self._tell_alive(now)

    def _ask(self, look: _Look, issued: dict[str, int], now: float) -> None:
        """Write what the main thread waits for, where that is not what was written.

        Autograd's device threads may issue buckets while the main thread waits in backward. And a
        thread that has lost its core while C++ issues a collective has counted it, and nobody yet
        knows it as outstanding.
        """
        told = self._told(look, issued)
        outstanding = [(call["group"], call["op"], call["seq"]) for call in told["waiting"]]
        if not _is_still(self._main, look.here, self._turn()):
            self._seen = None  # It went on meanwhile: what was told is of two moments.
            self._note_move(now)
            return
        if self._stuck == issued and self._outstanding == outstanding:
            self._log.write("still")
        else:
            since = self._since if self._stuck is None else now
            self._stuck, self._counts, self._asked = issued, None, 0.0
            self._log.write("stuck", since=since, **told)
        self._outstanding, self._due = outstanding, now + _AGAIN * (now - self._since)

    def _note_move(self, now: float) -> None:
        if self._stuck is not None:
            self._log.write("moved")
            self._stuck, self._counted = None, now

    def _note_work(self, look: _Look, now: float, issued: dict[str, int]) -> None:
        """Write where the main thread is that has not communicated for a while."""
        if issued != self._counts:
            if self._asked:
                self._log.write("moved")
            self._counts, self._counted, self._asked = issued, now, 0.0
        elif now - self._counted > max(_QUIET, 2 * self._asked) and self._counted:
            self._asked = now - self._counted
            self._log.write("working", since=self._counted, stack=look.stack, place=look.place)

    def _told(self, look: _Look, issued: dict[str, int]) -> dict[str, Any]:
        pending = self._pending
        return {
            "stack": look.stack,
            "place": look.place,
            "waiting": pending.outstanding(),
            "awaited": pending.awaited(),
            "issued": issued,
            "passes": self._passes() or [],
            "forwards": self._log.forwards,
            "other_threads_communicate": bool(pending.threads - {self._main}),
        }

    def _tell_alive(self, now: float) -> None:
        if now - self._told_alive > _ALIVE:
            self._log.write("alive", waits=self._waits / self._beats, steps=self._log.steps)
            self._told_alive, self._beats, self._waits = now, 0, 0


@looks_at_others
def _threads() -> set[int]:
    """Those that are alive.

    The ids alone: among the frames is this one, and what holds itself keeps all the others, with
    the job's tensors, until the garbage is collected.
    """
    return set(sys._current_frames())


@looks_at_others
def _is_still(thread: int, here: _Here, turn: int) -> bool:
    frame = sys._current_frames().get(thread)
    return frame is not None and (id(frame), frame.f_lasti, turn) == here


@looks_at_others
def _look_at(thread: int, turn: int = 0) -> _Look | None:
    """Where a thread is now; None if it has ended.

    All that is wanted of its frames at once, and without a pause: as long as they are held, what
    their variables hold is alive, and a DDP wrapper that lives a moment longer than the script
    thinks may meet the end of its process group (DDP419).
    """
    frame = sys._current_frames().get(thread)
    if frame is None:
        return None
    here, file = (id(frame), frame.f_lasti, turn), frame.f_code.co_filename
    stack = [as_frame(each) for each in outwards(frame)][::-1]
    del frame
    communicates = file.endswith(("/torch/autograd/graph.py", "/ddpdoctor/watch/collectives.py"))
    return _Look(here, stack, users_place(stack), communicates)
