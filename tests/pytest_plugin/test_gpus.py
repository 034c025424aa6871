"""The lease on GPUs, with GPUs that are only names."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ddpdoctor.pytest_plugin import gpus


@pytest.fixture(autouse=True)
def four_gpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gpus, "visible", lambda: ("0", "1", "GPU-a/b", "3"))
    monkeypatch.setattr(gpus.tempfile, "gettempdir", lambda: str(tmp_path))


def test_no_gpu_is_leased_twice_at_a_time() -> None:
    in_use: list[str] = []
    overlaps: list[str] = []
    lock = threading.Lock()

    def use(number: int) -> None:
        with gpus.lease(number) as names:
            assert len(names) == number
            with lock:
                overlaps.extend(name for name in names if name in in_use)
                in_use.extend(names)
            time.sleep(0.01)
            with lock:
                for name in names:
                    in_use.remove(name)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(use, [1, 2, 3, 4, 1, 2, 2]))
    assert overlaps == []


def test_gpus_that_stay_in_use_are_waited_for_and_then_told() -> None:
    complaint = pytest.raises(gpus.NoLease, match="2 GPUs were in use")
    with gpus.lease(3), complaint, gpus.lease(2, patience=0.0):
        pass
    # The lease that failed holds nothing.
    with gpus.lease(4, patience=0.0) as names:
        assert len(names) == 4
