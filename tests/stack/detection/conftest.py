from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def bodies() -> Path:
    return Path(__file__).with_name("bodies.py")
