"""Sees from a thread of its own that the main thread has stopped moving, and what it waits for."""

from __future__ import annotations

import sys
import threading
import time

from ddpdoctor.watch.collectives import Pending
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import as_frame, outwards, users_frame

BEAT = 0.1
"""Seconds between two looks. A rank is called stuck after two looks that saw the same call idle."""

_IDLE = 0.1
"""Share of a beat that a thread may spend on a CPU and still count as waiting."""


def start(log: Log, pending: Pending) -> None:
    """Start the thread; it is a daemon and holds the GIL for some microseconds a beat."""
    main = threading.main_thread().ident
    assert main is not None
    thread = threading.Thread(
        target=_beat, args=(log, pending, main), name="ddpdoctor", daemon=True
    )
    thread.start()


@harmless
def _beat(log: Log, pending: Pending, main: int) -> None:
    clock = time.pthread_getcpuclockid(main)
    before: tuple[int, int] | None = None
    since = cpu_before = 0.0
    stuck: dict[str, int] | None = None
    while True:
        time.sleep(BEAT)
        frame = sys._current_frames().get(main)
        if frame is None:
            return
        now, cpu = (id(frame), frame.f_lasti), time.clock_gettime(clock)
        idle = cpu - cpu_before < _IDLE * BEAT
        cpu_before = cpu
        if now != before or not idle:
            before, since = now, time.monotonic()
            if stuck is not None:
                log.write("moved")
            stuck = None
        elif stuck == (here := pending.issued()):
            log.write("still")
        else:
            # Autograd's device threads may issue buckets while the main thread waits in backward.
            since = since if stuck is None else time.monotonic()
            stuck = here
            log.write(
                "stuck",
                since=since,
                stack=[as_frame(each) for each in outwards(frame)][::-1],
                place=users_frame(frame),
                waiting=pending.outstanding(),
                issued=here,
                other_threads_communicate=bool(pending.threads - {main}),
            )
        del frame
