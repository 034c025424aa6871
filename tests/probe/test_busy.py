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
    """One CPU, for this process and three loops that are busy already."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    code = "print(flush=True)\nwhile True: pass"
    loops = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(3)
    ]
    for loop in loops:
        assert loop.stdout
        loop.stdout.readline()
    yield
    for loop in loops:
        loop.kill()
        loop.communicate()
    os.sched_setaffinity(0, allowed)


@pytest.mark.usefixtures("shared_cpu")
def test_a_thread_that_only_computes_either_computes_or_waits() -> None:
    # Each clock is read within those that are read before it: whatever comes between two looks,
    # the inner times are parts of the outer.
    begun, all_waited, waited, computed = (
        time.perf_counter(),
        kept_waiting(),
        kept_computing(),
        time.thread_time(),
    )
    while time.thread_time() - computed < 0.2:
        pass
    computed = time.thread_time() - computed
    waited = kept_computing() - waited
    all_waited = kept_waiting() - all_waited
    seconds = time.perf_counter() - begun
    assert computed + waited <= seconds * 1.001  # the kernel's clock is another one
    assert waited <= all_waited + 1e-6  # sums of the same numbers
    # The three others got as much of the CPU as this one: the kernel is fair, in whatever time.
    assert waited > computed
    assert computed * 0.999 <= without(waited, seconds) == seconds - waited


def test_who_sleeps_does_not_wait_for_a_cpu() -> None:
    begun, before = time.perf_counter(), kept_computing()
    time.sleep(0.2)
    waited = kept_computing() - before
    assert waited <= time.perf_counter() - begun - 0.2 + 0.001


def test_something_always_remains_of_a_time() -> None:
    assert without(5.0, 2.0) > 0
    assert without(0.0, 2.0) == 2.0
