"""What the tests of launching share."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import psutil

from ddpdoctor.launch import WorkerGroup

BODIES = Path(__file__).with_name("bodies.py")
MARK = "DDPDOCTOR_TEST_FAMILY"

Launch = Callable[..., WorkerGroup]


class Family:
    """All living processes that inherited one value of an environment variable."""

    def __init__(self, name: str = "") -> None:
        self.name = name or uuid.uuid4().hex

    def members(self) -> list[psutil.Process]:
        return [p for p in psutil.process_iter() if p.pid != os.getpid() and self._has(p)]

    def _has(self, process: psutil.Process) -> bool:
        try:
            alive = process.status() != psutil.STATUS_ZOMBIE
            return alive and process.environ().get(MARK) == self.name
        except psutil.Error:
            return False


def run(world: WorkerGroup, timeout: float = 60) -> WorkerGroup:
    """See a world to its own end."""
    assert world.wait(timeout), world.stacks()
    return world


def outputs(world: WorkerGroup, kind: str = "stdout") -> list[str]:
    return [world.job.rank_file(rank.rank, kind).read_text() for rank in world.ranks]


def wait_until(condition: Callable[[], bool], timeout: float = 60) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
