"""For all tests: one thread each, no hurry, and no process that outlives them."""

from __future__ import annotations

import os
import signal
import sys
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import psutil
import pytest
from hypothesis import settings

from tests.patience import within
from tests.thorough import THOROUGH

if TYPE_CHECKING:
    from ddpdoctor.launch import ForkServer

_MARK = "DDPDOCTOR_TEST_SESSION"
_PATIENCE = 10.0

settings.register_profile("ddpdoctor", deadline=None)  # the machine may be busy
settings.load_profile("ddpdoctor")


def pytest_addoption(parser: pytest.Parser) -> None:
    """What runs where nobody has an hour: one of each kind."""
    parser.addoption("--thorough", action="store_true", help="run those marked `thorough`, too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what holds of one more launcher or program what another test holds of some."""
    if config.getoption("--thorough"):
        return
    left_out = [item for item in items if item.get_closest_marker("thorough")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("thorough")]


def pytest_configure(config: pytest.Config) -> None:
    """Mark whatever is started from here on, xdist's workers included."""
    config.addinivalue_line("markers", "thorough: one more of a kind, which --thorough runs")
    os.environ["OMP_NUM_THREADS"] = "1"
    if config.getoption("--thorough"):
        os.environ[THOROUGH] = "1"
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Started in the background by a script: what is started from here on would be deaf to
        # Ctrl-C, too, and some tests send it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # by nohup
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if not hasattr(config, "workerinput"):
        os.environ[_MARK] = uuid.uuid4().hex
        config.add_cleanup(_require_that_nobody_is_left)


@pytest.fixture(scope="session")
def server() -> Iterator[ForkServer]:
    """Starts ranks, for all tests that need no server of their own: each imports torch."""
    from ddpdoctor.launch import ForkServer  # not before torch's threads are told their number
    from tests.patients.ward import PRELOAD

    with ForkServer(PRELOAD) as server:
        yield server


def _require_that_nobody_is_left() -> None:
    within(_PATIENCE, lambda: not _marked())
    if left := _marked():
        for process in left:
            process.kill()
        sys.exit(f"ERROR: these processes outlived the tests: {left}")


def _marked() -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if _is_marked(process)]


def _is_marked(process: psutil.Process) -> bool:
    try:
        alive = process.status() != psutil.STATUS_ZOMBIE
        return alive and process.environ().get(_MARK) == os.environ[_MARK]
    except psutil.Error:
        return False
