"""No process survives its world, whoever dies first. Living processes are counted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ddpdoctor.launch import ForkServer, Job, WorkerGroup
from tests.launch.helpers import BODIES, Family, run, wait_until
from tests.patience import ENDLESS
from tests.thorough import first_of

ROOT = Path(__file__).parents[2]
HELPERS = 2  # server and keeper
WORKERS_COME_OF = 0 if sys.version_info < (3, 14) else 2  # a fork server, and what it tracks by
PER_RANK = 4 + WORKERS_COME_OF  # itself, a loader's worker, a subprocess, a daemonised grandchild


@pytest.fixture(scope="module")
def own_family() -> Family:
    return Family()


@pytest.fixture(scope="module")
def own_server(own_family: Family) -> Iterator[ForkServer]:
    with pytest.MonkeyPatch.context() as patch, ForkServer() as server:
        patch.setenv("DDPDOCTOR_TEST_FAMILY", own_family.name)
        server.start()
        yield server
    assert own_family.members() == []


def world_that(server: ForkServer, then: str, folder: Path) -> WorkerGroup:
    kwargs = {"folder": str(folder), "then": then}
    return server.launch(Job(f"{BODIES}:leave_things_behind", 2, server.fresh_run_dir(), kwargs))


def ready(folder: Path) -> bool:
    return len(list(folder.glob("ready-*"))) == 2


def kill_keeper(world: WorkerGroup) -> None:
    psutil.Process(psutil.Process(world.ranks[0].pid).ppid()).kill()


@pytest.mark.parametrize("then", ["succeed", "fail", "crash"])
def test_a_world_that_ends_by_itself_leaves_nobody(
    own_server: ForkServer, own_family: Family, tmp_path: Path, then: str
) -> None:
    bystander_folder = tmp_path / "bystander"
    bystander_folder.mkdir()
    with world_that(own_server, "hang", bystander_folder) as bystander:
        wait_until(lambda: ready(bystander_folder))
        run(world_that(own_server, then, tmp_path))
        assert ready(tmp_path)
        assert len(own_family.members()) == HELPERS + 2 * PER_RANK, "the other world is untouched"
        assert bystander.poll() == []
    assert len(own_family.members()) == 1, "the server"


def test_a_hanging_world_that_is_killed_leaves_nobody(
    own_server: ForkServer, own_family: Family, tmp_path: Path
) -> None:
    world = world_that(own_server, "hang", tmp_path)
    wait_until(lambda: ready(tmp_path))
    assert len(own_family.members()) == HELPERS + 2 * PER_RANK
    world.kill()
    assert len(own_family.members()) == 1


def test_a_world_that_nobody_holds_any_more_leaves_nobody(
    own_server: ForkServer, own_family: Family, tmp_path: Path
) -> None:
    world = world_that(own_server, "hang", tmp_path)
    wait_until(lambda: ready(tmp_path))
    del world
    wait_until(lambda: len(own_family.members()) == 1)


def test_a_keeper_that_is_killed_takes_its_world_with_it(
    own_server: ForkServer, own_family: Family, tmp_path: Path
) -> None:
    world = world_that(own_server, "hang", tmp_path)
    wait_until(lambda: ready(tmp_path))
    kill_keeper(world)
    run(world)
    assert [fate.signal for fate in world.poll()] == [signal.SIGKILL] * 2
    wait_until(lambda: len(own_family.members()) == 1)


def test_a_server_that_is_killed_harms_no_world_and_is_replaced(
    own_server: ForkServer,
    own_family: Family,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = world_that(own_server, "hang", tmp_path)
    bare = own_server.launch(Job(f"{BODIES}:hang_at_exit", 2, own_server.fresh_run_dir()))
    wait_until(lambda: ready(tmp_path) and len(bare.results) == 2)
    server = min(own_family.members(), key=lambda process: process.create_time())
    assert "ddpdoctor.launch.server" in server.cmdline()
    server.kill()
    wait_until(lambda: server not in own_family.members())
    again = tmp_path / "again"
    again.mkdir()
    run(world_that(own_server, "succeed", again))
    assert "starting another" in caplog.text
    assert world.poll() == bare.poll() == []
    world.kill()
    kill_keeper(bare)  # whose parent is gone: nobody but the kernel is left to end its ranks
    wait_until(lambda: len(own_family.members()) == 1)


@pytest.fixture
def short_temporary() -> Iterator[Path]:
    """A folder for TMPDIR: a data loader has a socket in it, with a path of at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="dd-") as folder:
        yield Path(folder)


@pytest.mark.parametrize("number", first_of([signal.SIGINT, signal.SIGTERM, signal.SIGKILL]))
def test_a_doctor_that_is_ended_leaves_nobody(
    family: Family, tmp_path: Path, short_temporary: Path, number: signal.Signals
) -> None:
    temporary = short_temporary
    doctor = subprocess.Popen(
        [sys.executable, "-m", "tests.launch.doctor", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with doctor:
        assert doctor.stdout is not None
        assert doctor.stdout.readline() == b"ready\n"
        (bystander,) = (p for p in psutil.Process(doctor.pid).children() if p.cmdline()[1] == "-m")
        assert len(family.members()) == 2 + HELPERS + 2 * PER_RANK
        os.killpg(doctor.pid, number)  # as a terminal does
        assert doctor.wait(ENDLESS) == -number
        if number == signal.SIGINT:
            assert family.members() == [bystander], "an interrupted doctor leaves tidily"
        wait_until(lambda: family.members() == [bystander])
        bystander.kill()
        bystander.wait(ENDLESS)
        assert list(temporary.glob("ddpdoctor-*")) == []
