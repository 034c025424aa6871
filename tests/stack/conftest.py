from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ddpdoctor.launch import ForkServer, Job, WorkerGroup
from tests.patience import ENDLESS

BODIES = Path(__file__).with_name("bodies.py")
SYSTEMS = (
    *("ddpdoctor.stack.crystal", "ase.io", "ase.geometry", "pymatgen.core", "vesin"),
    *("ddpdoctor.stack.protein", "gemmi"),
    *("ddpdoctor.stack.detection", "scipy.optimize", "sklearn.datasets"),
    "ddpdoctor.stack.generation",
)


@pytest.fixture(autouse=True)
def _real_type() -> Iterator[None]:
    """Leave torch's default type as it was: some tests calculate in float64."""
    import torch  # not before OMP_NUM_THREADS is set, which it reads once

    before = torch.get_default_dtype()
    yield
    torch.set_default_dtype(before)


@pytest.fixture(scope="session")
def server() -> Iterator[ForkServer]:
    with ForkServer(preload=SYSTEMS) as server:
        yield server


@pytest.fixture
def bodies() -> Path:
    """The file with what the ranks run; a folder of tests may have its own."""
    return BODIES


@pytest.fixture
def launch(server: ForkServer, bodies: Path) -> Callable[..., WorkerGroup]:
    """Run a function of bodies.py on ranks of its own, to their end."""

    def launch(
        function: str, nproc: int, env: dict[str, str] | None = None, **kwargs: Any
    ) -> WorkerGroup:
        job = Job(
            target=f"{bodies}:{function}",
            nproc=nproc,
            run_dir=server.fresh_run_dir(),
            kwargs=kwargs,
            env=env or {},
        )
        with server.launch(job) as world:
            assert world.wait(ENDLESS), world.stacks()
        assert world.survivors == ()
        return world

    return launch


@pytest.fixture
def results(launch: Callable[..., WorkerGroup]) -> Callable[..., list[Any]]:
    """Run a function of bodies.py on ranks, and return what each rank's call returned."""

    def results(function: str, nproc: int, **kwargs: Any) -> list[Any]:
        world = launch(function, nproc, **kwargs)
        said = {rank.rank: rank.stderr.read_text() for rank in world.ranks}
        assert sorted(world.results) == list(range(nproc)), said
        return [world.results[rank] for rank in range(nproc)]

    return results


@pytest.fixture
def elasticity() -> Path:
    """The file with 512 real crystals and their moduli."""
    folder = os.environ.get("DDPDOCTOR_DATA")
    if not folder:
        pytest.skip("DDPDOCTOR_DATA does not name the folder with the crystal data")
    return Path(folder) / "mp_binary_elasticity_512.extxyz"
