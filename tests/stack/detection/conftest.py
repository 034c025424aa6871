from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ddpdoctor.launch import ForkServer


@pytest.fixture(scope="session")
def server() -> Iterator[ForkServer]:
    preload = ("ddpdoctor.stack.detection", "scipy.optimize", "sklearn.datasets")
    with ForkServer(preload=preload) as server:
        yield server


@pytest.fixture
def bodies() -> Path:
    return Path(__file__).with_name("bodies.py")
