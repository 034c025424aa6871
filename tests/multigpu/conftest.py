"""Tests that a machine with GPUs must pass; most run on the CPU by gloo, too, with --thorough.

    pytest -m multigpu --require-multigpu

Two cards are used where there are two. On a machine with one card both ranks share it, each as if
it were a host of its own: see `rank.settle_on_one_card`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ddpdoctor.launch import ForkServer, Job, gpus

RANK = Path(__file__).with_name("rank.py")
CARDS = min(2, max(1, len(gpus.visible())))
# One process that starts the ranks itself, and has leased the cards for them.
_ON_GPUS = [
    pytest.mark.multigpu(n=CARDS, timeout=900),
    pytest.mark.distributed(nproc=1, backend=None, timeout=900),
]


def on_gpus_all(name: str, *values: str) -> pytest.MarkDecorator:
    """All values on nccl, and the first of them on gloo too: other tests hold all of them there."""
    on_gloo = pytest.param("gloo", values[0], marks=pytest.mark.thorough)
    on_nccl = [pytest.param("nccl", value, marks=_ON_GPUS) for value in values]
    return pytest.mark.parametrize(("backend", name), [on_gloo, *on_nccl])


def on_gpus(test: Callable[..., None]) -> Callable[..., None]:
    """On nccl, and on gloo with --thorough: other tests hold it there."""
    on_gloo = pytest.param("gloo", marks=pytest.mark.thorough)
    on_nccl = pytest.param("nccl", marks=_ON_GPUS)
    return pytest.mark.parametrize("backend", [on_gloo, on_nccl])(test)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that asks for a backend on both, and on nccl only where there is a GPU."""
    named = {mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")}
    if "backend" in metafunc.fixturenames and not any("backend" in each for each in named):
        metafunc.parametrize("backend", ["gloo", pytest.param("nccl", marks=_ON_GPUS)])


def as_launched(nproc: int) -> list[str]:
    """Return how so many ranks are started here."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return [*torchrun, f"--nproc-per-node={nproc}", str(RANK)]


def environment() -> dict[str, str]:
    """Return this environment without what a launcher has said of this very process."""
    ours = ("RANK", "WORLD_SIZE", "MASTER_", "GROUP_", "ROLE_", "LOCAL_", "TORCHELASTIC_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


@pytest.fixture(scope="session")
def server() -> Iterator[ForkServer]:
    with ForkServer(preload=("tests.multigpu.bodies",)) as server:
        yield server


@pytest.fixture
def ranks(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., list[Any]]:
    """Run a function of bodies.py on ranks, and return what each of them returned.

    With GPUs torchrun starts them; on the CPU they are forked, which takes seconds less, unless
    torchrun is asked for.
    """

    def launched(body: str, nproc: int, **kwargs: Any) -> list[Any]:
        command = [*as_launched(nproc), body, str(tmp_path), json.dumps(kwargs)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment(), timeout=900
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return [json.loads((tmp_path / f"{body}.{n}").read_text()) for n in range(nproc)]

    def forked(body: str, nproc: int, **kwargs: Any) -> list[Any]:
        server: ForkServer = request.getfixturevalue("server")
        asked = {"body": body, "folder": str(tmp_path), "kwargs": kwargs}
        job = Job(f"{RANK}:perform", nproc, server.fresh_run_dir(), kwargs=asked)
        with server.launch(job) as world:
            assert world.wait(900), world.stacks()
        said = [rank.stderr.read_text() for rank in world.ranks]
        assert [fate.exit_code for fate in world.poll()] == [0] * nproc, said
        assert sorted(world.results) == list(range(nproc)), said
        return [world.results[rank] for rank in range(nproc)]

    def run(
        body: str, nproc: int, *, backend: str, by_torchrun: bool = False, **kwargs: Any
    ) -> list[Any]:
        start = launched if backend == "nccl" or by_torchrun else forked
        return start(body, nproc, backend=backend, **kwargs)

    return run
