from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ddpdoctor.launch import ForkServer, Job, WorkerGroup
from tests.launch.helpers import BODIES, MARK, Family, Launch


@pytest.fixture
def family(monkeypatch: pytest.MonkeyPatch) -> Iterator[Family]:
    """The processes that this test starts, which must all be gone at its end."""
    family = Family()
    monkeypatch.setenv(MARK, family.name)
    yield family
    left = family.members()
    for process in left:
        process.kill()
    assert left == []


@pytest.fixture
def launch(server: ForkServer, tmp_path: Path) -> Iterator[Launch]:
    """Launch a function of bodies.py on the session's server; it ends with the test."""
    worlds: list[WorkerGroup] = []
    numbers = count()

    def launch(function: str, nproc: int = 2, **options: Any) -> WorkerGroup:
        run_dir = tmp_path / f"run-{next(numbers)}"
        run_dir.mkdir()
        job = Job(target=f"{BODIES}:{function}", nproc=nproc, run_dir=run_dir, **options)
        world = server.launch(job)
        worlds.append(world)
        return world

    yield launch
    for world in worlds:
        world.kill()
        assert world.survivors == ()
