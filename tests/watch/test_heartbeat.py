from __future__ import annotations

import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from torch.distributed import distributed_c10d

from ddpdoctor.run.job import under_watch
from ddpdoctor.watch import heartbeat
from ddpdoctor.watch.collectives import Pending
from ddpdoctor.watch.heartbeat import _Heart, _look_at
from ddpdoctor.watch.joining import _leave
from ddpdoctor.watch.log import Log
from tests.patience import ENDLESS


class Wrapper:
    pass


def test_a_look_at_a_thread_keeps_nothing_of_it_alive() -> None:
    held: list[weakref.ref[Wrapper]] = []
    is_held, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        wrapper = Wrapper()
        held.append(weakref.ref(wrapper))
        is_held.set()
        may_end.wait(ENDLESS)

    thread = threading.Thread(target=hold)
    thread.start()
    assert is_held.wait(ENDLESS)
    look = _look_at(thread.ident or 0)
    may_end.set()
    thread.join(60)
    assert look is not None
    assert look.place is not None
    assert look.place[2].endswith("hold")
    assert held[0]() is None


class Job:
    """A thread that waits again and again, in the same frame; its log, and what is asked of it."""

    steps = forwards = 0
    trainer = None
    threads: frozenset[int] = frozenset()

    def __init__(self) -> None:
        self.told: list[str] = []
        self.turns: dict[int, int] = {}
        self.on, self.waits = threading.Lock(), threading.Semaphore(0)
        self.on.acquire()
        self.goes_on = self.has_ended = False
        self.recorded: list[Any] = []

    def live(self) -> None:
        me = threading.get_ident()
        while not self.has_ended:
            self.turns[me] = self.turns.get(me, 0) + 1
            self.waits.release()
            self.on.acquire()

    def go_on(self) -> None:
        self.on.release()
        self.waits.acquire()

    def write(self, kind: str, **fields: Any) -> None:
        self.told.append(kind)

    def outstanding(self) -> list[Any]:
        if self.goes_on:
            self.go_on()
        return list(self.recorded)

    def awaited(self) -> None:
        return None

    def passes(self) -> list[Any]:
        return []

    def issued(self) -> dict[str, int]:
        return {"0": 1}


@contextmanager
def beats(job: Job) -> Iterator[Callable[[], None]]:
    thread = threading.Thread(target=job.live)
    thread.start()
    job.waits.acquire()
    ident = thread.ident or 0
    log: Any = job
    heart = _Heart(log, log, ident)

    def beat() -> None:
        look = _look_at(ident, job.turns[ident])
        assert look is not None
        heart._beat(look)

    yield beat
    job.has_ended = True
    job.on.release()
    thread.join(60)


def test_a_thread_that_waits_is_told_to_be_stuck() -> None:
    job = Job()
    with beats(job) as beat:
        beat()
        beat()
        beat()
    assert job.told == ["alive", "stuck", "still"]


def test_a_thread_that_waits_for_another_thing_at_each_look_is_not_stuck() -> None:
    job = Job()
    with beats(job) as beat:
        beat()
        job.go_on()
        beat()
    assert job.told == ["alive"]


def test_what_is_told_of_a_thread_that_goes_on_while_it_is_asked_is_not_written() -> None:
    job = Job()
    job.goes_on = True
    with beats(job) as beat:
        beat()
        beat()
    assert job.told == ["alive"]


def test_a_call_that_was_counted_before_it_was_known_as_outstanding_is_told_when_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heartbeat, "_AGAIN", 0.0)
    job = Job()
    with beats(job) as beat:
        beat()
        beat()
        job.recorded = [{"group": "0", "seq": 1, "op": "all_reduce"}]
        beat()
        beat()
    assert job.told == ["alive", "stuck", "stuck", "still"]


LEAVING_WHILE_SEEN = """
import gc, threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ddpdoctor.watch.heartbeat import _Heart, _look_at

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
        timeout=ENDLESS,
        check=False,
    )
    assert done.returncode == 0, done.stderr


ASKING_AS_IT_ENDS = """
import atexit, sys, time
import torch.distributed as dist
from ddpdoctor.watch import heartbeat
from ddpdoctor.watch.collectives import Pending

once = Pending.issued

def issued(pending):
    for _ in range(20_000):
        counts = once(pending)
    asked.append(time.monotonic())
    return counts

def waits_as_it_ends():
    asked.clear()
    while not asked:
        time.sleep(0.01)

asked = []
Pending.issued = issued
heartbeat.BEAT = heartbeat._BETWEEN_BUSY = 0.0
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
atexit.register(waits_as_it_ends)
time.sleep(0.2)
"""


def test_a_beat_that_asks_torch_is_over_before_the_interpreter_ends_and_not_before_its_hooks(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASKING_AS_IT_ENDS],
        env={**os.environ, **under_watch(tmp_path)},
        capture_output=True,
        text=True,
        timeout=ENDLESS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("attempt-*/rank-0.log"))


class Group:
    group_name = "0"


def test_no_group_is_held_by_a_look_while_the_job_destroys_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, looks = Log(), []
    pending = Pending(log)
    group = Group()
    monkeypatch.setitem(distributed_c10d._world.pg_map, group, None)
    monkeypatch.setattr(pending, "count", lambda group: looks.append(group) or 7)
    assert pending.issued()["0"] == 7

    def destroy() -> None:
        assert pending.issued()["0"] == 7
        assert looks == [group]

    _leave(log, destroy)
    pending.issued()
    assert looks == [group, group]
