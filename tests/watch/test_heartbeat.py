from __future__ import annotations

import subprocess
import sys
import threading
import weakref

from ddpdoctor.watch.heartbeat import _look_at


class Wrapper:
    pass


def test_a_look_at_a_thread_keeps_nothing_of_it_alive() -> None:
    held: list[weakref.ref[Wrapper]] = []
    is_held, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        wrapper = Wrapper()
        held.append(weakref.ref(wrapper))
        is_held.set()
        may_end.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert is_held.wait(60)
    look = _look_at(thread.ident or 0)
    may_end.set()
    thread.join(60)
    assert look is not None
    assert look.place is not None
    assert look.place[2].endswith("hold")
    assert held[0]() is None


LEAVING_WHILE_SEEN = """
import gc, threading
from ddpdoctor.watch.heartbeat import _look_at

def visit(threshold):
    below, may_leave, has_left, seen = (threading.Semaphore(0) for _ in range(4))

    def descend(depth):
        if depth:
            descend(depth - 1)
        else:
            below.release()
            may_leave.acquire()

    def let_it_leave(phase, info):
        if threading.current_thread() is looking and phase == "start":
            gc.callbacks.remove(let_it_leave)
            may_leave.release()
            has_left.acquire()

    def look():
        below.acquire()
        gc.collect()
        gc.callbacks.append(let_it_leave)
        gc.set_threshold(threshold)
        _look_at(threading.main_thread().ident)
        gc.set_threshold(700)
        gc.callbacks[:] = []
        may_leave.release()
        seen.release()

    looking = threading.Thread(target=look)
    looking.start()
    descend(500)
    has_left.release()
    seen.acquire()

for threshold in range(100, 108):
    visit(threshold)
assert gc.isenabled()
"""


def test_a_thread_may_leave_its_frames_while_it_is_looked_at() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", LEAVING_WHILE_SEEN],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
