"""Nothing is started that this machine has not got room for, and nothing outlives its starter."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddpdoctor.environment.facts.machine import Machine
from ddpdoctor.launch import NoRoom
from ddpdoctor.launch.capacity import FORKED, SERVER, Cost, judge
from tests.control_group import ControlGroup, NoControlGroup
from tests.launch.helpers import BODIES, wait_until
from tests.patience import ENDLESS, within
from tests.thorough import first_of

ROOT = Path(__file__).parents[2]
GIB = 1 << 30
MIB = 1 << 20
AT_MOST = re.compile(r"at most (\d+) can be started")


@pytest.fixture
def group() -> Iterator[ControlGroup]:
    try:
        made = ControlGroup(memory=GIB, tasks=200)
    except NoControlGroup as error:
        pytest.skip(str(error))
    with made:
        yield made


@pytest.fixture
def temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="dd-") as folder:
        yield Path(folder)


def machine(
    root: Path, *, available: int, group: str = "max", used: int = 0, cached: int = 0
) -> Machine:
    """A machine with so much memory left, and a control group of version 2."""
    files = {
        "proc/meminfo": f"MemTotal: 99999999 kB\nMemAvailable: {available // 1024} kB\n",
        "proc/loadavg": "0.1 0.2 0.3 1/100 4711\n",
        "proc/self/cgroup": "0::/mine\n",
        "proc/self/status": "CapEff:\t0\n",
        "proc/sys/kernel/pid_max": "4194304\n",
        "proc/sys/kernel/threads-max": "100000\n",
        "sys/fs/cgroup/mine/memory.max": f"{group}\n",
        "sys/fs/cgroup/mine/memory.high": "max\n",
        "sys/fs/cgroup/mine/memory.current": f"{used}\n",
        "sys/fs/cgroup/mine/memory.stat": (
            f"inactive_file {cached}\nactive_file {cached}\nfile_mapped {cached}\n"
        ),
        "sys/fs/cgroup/mine/pids.max": "max\n",
        "sys/fs/cgroup/mine/pids.current": "1\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return Machine({}, root)


def most(where: Machine, each: Cost = FORKED) -> int:
    with pytest.raises(NoRoom) as refusal:
        judge(100_000, each, SERVER, where)
    assert "\n" not in str(refusal.value)
    found = AT_MOST.search(str(refusal.value))
    return int(found[1]) if found else 0


@given(st.integers(0, 64 * GIB), st.integers(MIB, GIB), st.integers(1, 50))
def test_the_number_that_is_told_fits_and_one_more_does_not(
    available: int, memory: int, tasks: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        where = machine(Path(folder), available=available)
        each = Cost(memory, tasks)
        fits = most(where, each)
        if fits:
            judge(fits, each, SERVER, where)
        with pytest.raises(NoRoom):
            judge(fits + 1, each, SERVER, where)


def test_a_control_group_counts_before_the_machine_and_what_it_can_give_up_counts_as_left(
    tmp_path: Path,
) -> None:
    assert most(machine(tmp_path, available=64 * GIB)) > 1000
    tight = most(machine(tmp_path, available=64 * GIB, group=str(2 * GIB), used=GIB))
    assert tight == (GIB - GIB // 10 - SERVER.memory) // FORKED.memory
    cached = machine(tmp_path, available=64 * GIB, group=str(2 * GIB), used=GIB, cached=512 * MIB)
    assert most(cached) == (GIB * 3 // 2 - GIB * 3 // 20 - SERVER.memory) // FORKED.memory


def test_where_not_one_rank_fits_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoRoom, match=r"^1 rank needs .* of memory, .*: none can be started$"):
        judge(1, FORKED, SERVER, machine(tmp_path, available=100 * MIB))


def check(group: ControlGroup, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = group.command(sys.executable, "-m", "ddpdoctor", "check", *arguments)
    return subprocess.run(command, capture_output=True, text=True, timeout=ENDLESS, check=False)


@pytest.mark.thorough
def test_more_ranks_than_fit_are_refused_before_anything_is_forked_and_the_number_told_works(
    group: ControlGroup,
) -> None:
    refused = check(group, "--nproc", "9999", "--select", "DDP101")
    assert refused.returncode == 2, refused
    assert refused.stdout == ""
    assert refused.stderr.count("\n") == 1
    found = AT_MOST.search(refused.stderr)
    assert found, refused.stderr
    assert group.most_tasks < 6, "the doctor alone"
    done = check(group, "--nproc", found[1], "--select", "DDP101", "--suite", "quick", "-j", "50")
    assert (done.returncode, done.stderr) == (0, "")
    assert ", 0 not checked" in " ".join(done.stdout.split())
    assert not group.was_full()


@pytest.mark.thorough
def test_launches_at_a_time_are_as_many_as_fit_whatever_was_asked_for(
    group: ControlGroup,
) -> None:
    done = check(group, "--nproc", "4", "--select", "DDP30,DDP501", "-j", "50", "--suite", "quick")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert ", 0 not checked" in " ".join(done.stdout.split())
    assert not group.was_full()


@pytest.mark.thorough
def test_force_tries_it_all_the_same_and_what_then_fails_is_told(
    group: ControlGroup,
) -> None:
    done = check(group, "--nproc", "250", "--select", "DDP101", "--force")
    assert done.returncode == 3, done
    assert "could not be started: Resource temporarily unavailable" in " ".join(done.stdout.split())
    assert within(5, lambda: not group.pids())


STARTER = """
import sys, time
from pathlib import Path
from ddpdoctor.launch import ForkServer, Job

preload, nproc, polls = sys.argv[1].split(), int(sys.argv[2]), sys.argv[3] == "polls"
with ForkServer(preload, force=True) as server:
    folder = server.fresh_run_dir()
    print(folder, flush=True)
    with server.launch(Job("{bodies}:sleep", nproc, folder)) as world:
        while polls:
            world.wait_for_news(0.05)
        time.sleep(600)
"""


HARD_OF_HEARING = """
import time
from multiprocessing.connection import wait
from ddpdoctor.launch import ForkServer

with ForkServer() as server:
    print(server.fresh_run_dir(), flush=True)
    wait([server._channel])
    print("has not heard that it is ready", flush=True)
    time.sleep(600)
"""


class Starter:
    """A doctor in a group, that launches ranks which sleep."""

    def __init__(
        self, group: ControlGroup, temporary: Path, nproc: int, preload: str = "", *, polls: bool
    ) -> None:
        code = STARTER.replace("{bodies}", str(BODIES))
        said = "polls" if polls else "does not"
        command = group.command(sys.executable, "-c", code, preload, str(nproc), said)
        paths = os.pathsep.join((str(ROOT), str(temporary)))
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": paths},
        )
        assert self.process.stdout is not None
        self.folder = Path(self.process.stdout.readline().decode().strip())

    def server(self) -> int:
        children = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        (server,) = map(int, Path(children).read_text().split())
        return server

    def ranks(self) -> int:
        return sum(file.stat().st_size > 0 for file in self.folder.glob("rank-*.stdout"))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def assert_nothing_is_left(group: ControlGroup, temporary: Path) -> None:
    assert within(5, lambda: not group.pids()), group.pids()
    assert [entry.name for entry in temporary.iterdir() if entry.name.startswith("ddp")] == []


@pytest.mark.thorough
def test_a_starter_that_is_killed_while_torch_is_imported_leaves_nothing(
    group: ControlGroup, temporary: Path
) -> None:
    started = temporary / "imports"
    (temporary / "slow_import.py").write_text(
        f"import pathlib, time; pathlib.Path({str(started)!r}).touch(); time.sleep(60)"
    )
    starter = Starter(group, temporary, 2, "slow_import", polls=True)
    wait_until(started.exists)
    starter.kill()
    assert_nothing_is_left(group, temporary)


@pytest.mark.thorough
def test_a_starter_that_is_killed_before_it_has_heard_all_that_was_said_leaves_nothing(
    group: ControlGroup, temporary: Path
) -> None:
    with subprocess.Popen(
        group.command(sys.executable, "-c", HARD_OF_HEARING),
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as starter:
        assert starter.stdout is not None
        assert len([starter.stdout.readline(), starter.stdout.readline()]) == 2
        starter.kill()
    assert_nothing_is_left(group, temporary)


@pytest.mark.parametrize("stage", first_of(["fork_loop", "all_born"]))
def test_a_starter_that_is_killed_while_its_server_is_stopped_leaves_nothing(
    group: ControlGroup, temporary: Path, stage: str
) -> None:
    starter = Starter(group, temporary, 40, polls=True)
    wait_until(lambda: starter.ranks() > (1 if stage == "fork_loop" else 39))
    os.kill(starter.server(), signal.SIGSTOP)
    starter.kill()
    assert_nothing_is_left(group, temporary)


STARTS_SLOWLY = """
import pathlib, sys, time
if "ddpdoctor.launch.server" in sys.orig_argv:
    pathlib.Path({born!r}).touch()
    time.sleep(1)
"""


def test_a_starter_that_is_killed_while_its_server_is_stopped_at_its_birth_leaves_nothing(
    group: ControlGroup, temporary: Path
) -> None:
    born = temporary / "born"
    (temporary / "sitecustomize.py").write_text(STARTS_SLOWLY.format(born=str(born)))
    with subprocess.Popen(
        group.command(sys.executable, "-c", HARD_OF_HEARING),
        stdout=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(temporary)},
    ) as starter:
        wait_until(born.exists)
        (server,) = (pid for pid in group.pids() if pid != starter.pid)
        os.kill(server, signal.SIGSTOP)
        starter.kill()
    assert_nothing_is_left(group, temporary)


@pytest.mark.thorough
def test_a_starter_that_no_longer_runs_gets_one_batch_of_ranks_and_no_more(
    group: ControlGroup, temporary: Path
) -> None:
    starter = Starter(group, temporary, 100, polls=False)
    wait_until(lambda: starter.ranks() == 16)
    time.sleep(1)
    assert starter.ranks() == 16
    starter.kill()
    assert_nothing_is_left(group, temporary)


@pytest.mark.parametrize(
    ("number", "moment"),
    first_of(
        [
            (signal.SIGKILL, "at_once"),
            (signal.SIGHUP, "at_once"),
            (signal.SIGKILL, "while_ranks_run"),
            (signal.SIGQUIT, "while_ranks_run"),
        ]
    ),
)
def test_a_check_that_is_ended_leaves_no_process_and_no_folder(
    group: ControlGroup, temporary: Path, number: signal.Signals, moment: str
) -> None:
    command = group.command(
        *(sys.executable, "-m", "ddpdoctor", "check", "--nproc", "2", "--select", "DDP504")
    )
    with subprocess.Popen(
        command,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        wait_until(lambda: any(temporary.iterdir()))
        if moment == "while_ranks_run":
            wait_until(lambda: any(temporary.glob("*/*/*/rank-0.log")))
        process.send_signal(number)
    assert_nothing_is_left(group, temporary)
