"""What a process is kept from by others is known."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ddpdoctor.launch.processes import share
from tests.patience import within

SPIN = "import os; os.sched_setaffinity(0, {int(os.environ['CORE'])})\nwhile True: pass"


@pytest.fixture
def rivals() -> Iterator[list[int]]:
    core = min(os.sched_getaffinity(0))
    command, environment = [sys.executable, "-c", SPIN], {"CORE": str(core)}
    processes = [subprocess.Popen(command, env=environment) for _ in range(3)]
    yield [each.pid for each in processes]
    for each in processes:
        each.kill()
        each.wait()


def test_who_shares_a_core_with_two_others_gets_a_part_of_it(rivals: list[int]) -> None:
    assert within(60, lambda: share(rivals) < 0.6)
    assert share(rivals) >= 1 / 6


def test_who_never_wants_a_core_is_kept_from_nothing_and_the_dead_count_for_nothing() -> None:
    stopped = subprocess.Popen(["sleep", "60"])
    stopped.send_signal(signal.SIGKILL)
    stopped.wait()
    assert share([stopped.pid]) == share([]) == 1.0
