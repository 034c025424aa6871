"""What a rank loses to other work is what the kernel says that it lost."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddpdoctor.probe.busy import kept_computing, kept_waiting, without

pytestmark = pytest.mark.skipif(
    not Path("/proc/thread-self/schedstat").exists(), reason="this kernel does not count it"
)


@pytest.fixture
def shared_cpu() -> Iterator[None]:
    """One CPU, for this process and three busy loops."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()
    os.sched_setaffinity(0, allowed)


@pytest.mark.usefixtures("shared_cpu")
def test_a_thread_that_only_computes_either_computes_or_waits() -> None:
    begun, computed, waited, all_waited = (
        time.perf_counter(),
        time.thread_time(),
        kept_computing(),
        kept_waiting(),
    )
    while time.thread_time() - computed < 0.2:
        pass
    seconds = time.perf_counter() - begun
    computed, waited = time.thread_time() - computed, kept_computing() - waited
    assert computed + waited == pytest.approx(seconds, rel=0.1)
    assert waited <= kept_waiting() - all_waited + 0.1 * seconds
    assert without(waited, seconds) == pytest.approx(computed, rel=0.2)


def test_who_sleeps_does_not_wait_for_a_cpu() -> None:
    before = kept_computing()
    time.sleep(0.2)
    assert kept_computing() - before < 0.2


def test_something_always_remains_of_a_time() -> None:
    assert without(5.0, 2.0) > 0
    assert without(0.0, 2.0) == 2.0
