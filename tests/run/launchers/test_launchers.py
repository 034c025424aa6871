"""Each launcher as a patient: well, hanging, crashing and interrupted, with the codes promised."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.patience import ENDLESS, within
from tests.ports import free_port
from tests.run.conftest import HERE, environment, living
from tests.run.launchers import slurm

TRAIN = HERE / "launchers" / "train.py"
IDLE = HERE / "launchers" / "idle.py"
LIT = HERE / "launchers" / "lit.py"
RAYED = HERE / "launchers" / "rayed.py"
_OF_OURS = re.compile(r"ddpdoctor|DDP\d{3}")


@dataclass(frozen=True)
class Launcher:
    """How a training on two ranks is started."""

    name: str
    command: tuple[str, ...]
    script: Path = TRAIN
    prefix: str = ""
    """Before what the script is to do."""
    needs: tuple[str, ...] = ()
    """Programs, or modules, that may not be installed."""
    crash: frozenset[int] = frozenset({1})
    """With what it ends when a rank has raised; here and below as it does without a doctor."""
    terminated: frozenset[int] = frozenset({128 + signal.SIGTERM})
    """When it is asked to end."""
    interrupted: frozenset[int] = frozenset({128 + signal.SIGINT})
    """After Ctrl-C. A second one may end it by itself, or find it gone."""

    def starts(self, what: str) -> list[str]:
        return [*self.command, str(self.script), self.prefix + what]

    def idles(self) -> list[str]:
        script = IDLE if self.script == TRAIN else self.script
        return [*self.command, str(script), f"{self.prefix}idle"]

    @property
    def is_here(self) -> bool:
        return all(shutil.which(each) or importlib.util.find_spec(each) for each in self.needs)


AGENTS = (
    "for n in 0 1; do torchrun --nnodes=2 --node-rank=$n --nproc-per-node=1 "
    '--master-addr=127.0.0.1 --master-port=$MASTER_PORT "$@" & done; '
    "trap : INT; code=0; for job in $(jobs -p); do wait $job || code=$?; done; wait; exit $code"
)
DEEPSPEED = (
    "exec deepspeed --num_gpus=2 --no_local_rank --master_addr=127.0.0.1 "
    '--master_port=$MASTER_PORT "$@"'
)
ONE = frozenset({1})
ABORTED = 128 + signal.SIGABRT
"""How a rank may end that raises while it has a gloo group: as torch is torn down, a thread of its
may still want the GIL, with a doctor and without (pytorch/pytorch#179291).
"""
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2")
LAUNCHERS = [
    Launcher(
        "torchrun",
        ("torchrun", "--standalone", "--nproc-per-node=2"),
        terminated=ONE,
        interrupted=ONE,
    ),
    Launcher("two agents", ("bash", "-c", AGENTS, "bash"), interrupted=ONE),
    Launcher("mp.spawn", ("python",), prefix="spawn:"),
    Launcher(
        "a shell",
        ("python", str(HERE / "launch.py"), "2"),
        crash=frozenset({1, signal.SIGABRT}),
    ),
    Launcher(
        "mpirun",
        (*MPIRUN, "python"),
        needs=("mpirun",),
        crash=frozenset({1, ABORTED}),
        terminated=ONE,
        interrupted=ONE,
    ),
    Launcher(
        "srun",
        ("srun", "-n2", "--overlap", "--kill-on-bad-exit", "python"),
        needs=("srun",),
        crash=frozenset({1, ABORTED, 128 + signal.SIGTERM}),  # as srun ends the other rank
        terminated=frozenset({128 + signal.SIGTERM, 128 + signal.SIGKILL}),
        interrupted=frozenset({128 + signal.SIGINT, 128 + signal.SIGKILL}),  # of what it ended
    ),
    Launcher(
        "accelerate",
        ("accelerate", "launch", "--multi_gpu", "--num_processes=2", "--num_machines=1"),
        needs=("accelerate",),
        terminated=ONE,
        interrupted=ONE,
    ),
    Launcher("deepspeed", ("bash", "-c", DEEPSPEED, "bash"), needs=("deepspeed",)),
    Launcher(
        "Lightning",
        ("python",),
        script=LIT,
        needs=("lightning",),
        terminated=frozenset({0}),  # it stops to train, and has ended well
        interrupted=ONE,
    ),
    Launcher(
        "Ray Train",
        ("python",),
        script=RAYED,
        needs=("ray", "pyarrow"),
        terminated=frozenset({ABORTED}),
        interrupted=ONE,
    ),
]
PLAINEST = "torchrun"


def _every_time(*names: str) -> pytest.MarkDecorator:
    """With each of them; but for these, they wait for --thorough."""
    marks = {each.name: [] if each.name in names else pytest.mark.thorough for each in LAUNCHERS}
    chosen = [pytest.param(each, id=each.name, marks=marks[each.name]) for each in LAUNCHERS]
    return pytest.mark.parametrize("launcher", chosen, indirect=True)


of_the_plainest = _every_time(PLAINEST)
of_one_of_a_kind = _every_time(PLAINEST, "deepspeed", "Lightning", "Ray Train")
BY_ELASTIC = ("torchrun", "accelerate")
"""Where one launcher alone is ended, and hears it before its ranks end."""


@pytest.fixture(scope="session")
def of_slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with slurm.cluster(tmp_path_factory.mktemp("slurm")) as variables:
        yield variables


@pytest.fixture
def launcher(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Launcher:
    chosen: Launcher = request.param
    if not chosen.is_here:
        pytest.skip(f"{' or '.join(chosen.needs)} is not installed")
    if chosen.name == "srun":
        if not slurm.is_here():
            pytest.skip("srun needs root here, and the daemons of slurm-wlm")
        for name, value in request.getfixturevalue("of_slurm").items():
            monkeypatch.setenv(name, value)
    return chosen


class Run:
    """A job under the doctor, with a terminal to be interrupted from, as a shell starts it.

    The terminal is the doctor's own, and hangs up when the doctor ends: a shell's does not.
    """

    def __init__(self, folder: Path, command: list[str], *, terminal: bool = True) -> None:
        self._folder = folder
        self._out, self._err = folder / "out", folder / "err"
        doctor = ["-m", "ddpdoctor", "run", "--format=json", "-o", "report.json", "--"]
        variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        self._terminal, stdin = pty.openpty()
        with self._out.open("ab") as out, self._err.open("ab") as err:
            self.process = subprocess.Popen(
                [sys.executable, *doctor, *command],
                cwd=folder,
                env=environment(folder, variables),
                stdin=stdin,
                preexec_fn=(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) if terminal else None,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        os.close(stdin)

    def ended(self) -> tuple[int, str, str]:
        assert within(120, self.is_over), self._err.read_text()
        os.close(self._terminal)
        code = self.process.wait()
        as_told = code if code >= 0 else 128 - code  # by a shell
        return as_told, self._out.read_text(), self._err.read_text()

    @property
    def report(self) -> dict:
        return json.loads((self._folder / "report.json").read_text())

    def wait_for(self, *files: str) -> None:
        there = within(90, lambda: all((self._folder / file).exists() for file in files))
        assert there, self.process.poll()

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.write(self._terminal, b"\x03")

    def interrupt_twice(self) -> None:
        """Press it as srun wants it: again, within the second in which it asks for that.

        Two that come before it runs again are one, and a busy machine may miss that second once.
        """
        for _ in range(3):
            if not self._is_asked_for_another():
                return

    def _is_asked_for_another(self) -> bool:
        asked = self._asked()
        self.interrupt()
        within(10, lambda: self.is_over() or self._asked() > asked)
        return self._asked() > asked

    def _asked(self) -> int:
        return self._err.read_text().count("one more within 1 sec")

    def is_over(self) -> bool:
        return self.process.poll() is not None


@pytest.fixture
def begin(tmp_path: Path) -> Iterator:
    yield lambda command, **options: Run(tmp_path, command, **options)
    within(60, lambda: not living(tmp_path))
    left = []
    for process in living(tmp_path):
        with contextlib.suppress(psutil.Error):
            left.append((process.pid, process.cmdline()))
            process.kill()
    assert left == []


def line_of(script: Path, mark: str) -> int:
    lines = script.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))


@_every_time(PLAINEST, "Lightning")
def test_a_job_that_is_well_is_not_spoken_of_and_what_is_written_is_no_file_of_its(
    launcher: Launcher, begin, tmp_path: Path
) -> None:
    run = begin(launcher.starts("well"))
    code, out, err = run.ended()
    assert code == 0, err
    assert sorted(line for line in out.splitlines() if "trained" in line) == [
        "rank 0 trained",
        "rank 1 trained",
    ]
    assert not _OF_OURS.search(err), err
    assert run.report["findings"] == []
    logs = list((tmp_path / "reports").rglob("rank-*.log"))
    assert len(logs) >= 2
    for log in logs:
        events = [json.loads(line) for line in log.read_text().splitlines()]
        paths = [event["path"] for event in events if event["k"] == "file"]
        assert [path for path in paths if "/reports/" in path] == []


@of_one_of_a_kind
def test_a_hang_is_proven_and_ended_with_1(launcher: Launcher, begin, tmp_path: Path) -> None:
    what = "backward" if launcher.name == "torchrun" else "hang"
    run = begin(launcher.starts(what))
    code, _, err = run.ended()
    assert code == 1, err
    if launcher.name in BY_ELASTIC:
        (told,) = tmp_path.glob("reports/run-*/launcher.log")
        assert "SignalException" in told.read_text()
        # Whether it then has ranks left to send a "closing signal" to, is a race of theirs.
        assert "death signal" in told.read_text()
        assert "death signal" not in err
        assert "closing signal" not in err
        assert "Traceback" not in err
        assert str(told) in err
    report = run.report
    assert report["ended_by"] == "doctor"
    (finding,) = report["findings"]
    assert (finding["code"], finding["certainty"], finding["ranks"]) == ("DDP401", "proven", [0])
    assert finding["places"][0]["place"]["line"] == line_of(launcher.script, "the barrier")
    assert "every rank" in finding["cure"]["text"]
    if what == "backward":
        (other,) = [place for place in finding["places"] if place["ranks"] == [1]]
        assert other["doing"].endswith("(backward)")
        assert other["place"]["line"] == line_of(TRAIN, "in DDP's")


@of_the_plainest
def test_a_rank_that_raises_is_named_and_the_code_is_the_launchers(
    launcher: Launcher, begin, tmp_path: Path
) -> None:
    run = begin(launcher.starts("crash"))
    code, _, err = run.ended()
    assert code in launcher.crash, err
    if launcher.name in BY_ELASTIC:
        (told,) = tmp_path.glob("reports/run-*/summary.log")
        assert "Root Cause (first observed failure)" in told.read_text()
        assert "ChildFailedError" not in err
        assert str(told) in err
    report = run.report
    assert report["ended_by"] == "job"
    finding = report["findings"][0]
    assert (finding["ranks"], finding["certainty"]) == ([1], "proven")
    assert "a bad sample" in finding["cause"]
    assert finding["places"][0]["place"]["line"] == line_of(launcher.script, "the crash")


@_every_time()
def test_a_silent_error_makes_a_job_that_ended_well_end_with_1(launcher: Launcher, begin) -> None:
    if launcher.script != TRAIN:
        pytest.skip(f"{launcher.name} steps by itself")
    run = begin(launcher.starts("drift"))
    code, out, err = run.ended()
    assert (code, out.count("trained")) == (1, 2), err
    report = run.report
    assert report["ended_by"] == "job"
    assert [each["code"] for each in report["findings"] if each["severity"] == "error"] == [
        "DDP300"
    ]


@of_the_plainest
def test_a_request_to_end_ends_all_of_it(launcher: Launcher, begin) -> None:
    run = begin(launcher.idles())
    run.wait_for("idles-0", "idles-1")
    run.process.terminate()
    code, _, err = run.ended()
    assert code in launcher.terminated, err
    assert run.report["ended_by"] == "signal"


@of_the_plainest
def test_ctrl_c_twice_ends_all_of_it(launcher: Launcher, begin) -> None:
    if launcher.name == "mpirun":
        pytest.skip("mpirun itself leaves its ranks at a second one, with and without a doctor")
    run = begin(launcher.idles())
    run.wait_for("idles-0", "idles-1")
    if launcher.name == "srun":
        run.interrupt_twice()
    else:
        run.interrupt()
        time.sleep(0.2)
        run.interrupt()
    code, _, err = run.ended()
    assert code in launcher.interrupted | {128 + signal.SIGINT}, err
    assert run.report["ended_by"] == "signal"


@_every_time()
def test_a_doctor_that_is_killed_takes_nobody_with_it(
    launcher: Launcher, begin, tmp_path: Path
) -> None:
    run = begin(launcher.idles(), terminal=False)
    run.wait_for("idles-0", "idles-1")
    run.process.kill()
    assert run.process.wait(ENDLESS) == -signal.SIGKILL
    time.sleep(0.5)
    assert not list(tmp_path.glob("ended-*"))
    (tmp_path / "enough").touch()
    run.wait_for("ended-0", "ended-1")
    run.ended()


@_every_time()
def test_an_interrupt_ends_all_of_it(launcher: Launcher, begin) -> None:
    run = begin(launcher.starts("long"))
    run.wait_for("trains-0", "trains-1")
    if launcher.name == "srun":
        run.interrupt_twice()
    else:
        run.interrupt()
    assert within(30, run.is_over)
    code, _, err = run.ended()
    assert code in launcher.interrupted, err
    assert "forcefully exiting" not in err, "as torchrun says after 30 s in vain"
    report = run.report
    assert report["ended_by"] == "signal"
    assert report["findings"] == [], "it trained"


LEAVES_FIRST = """
import time

import torch.distributed as dist

dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank() == 1:
    time.sleep(2)
    raise SystemExit(3)
"""


@pytest.mark.thorough
def test_an_agent_that_waits_in_vain_for_that_of_another_host_ends_when_it_is_asked_to(
    begin, tmp_path: Path
) -> None:
    script, port = tmp_path / "leaves.py", free_port()
    script.write_text(LEAVES_FIRST)
    agent = ["torchrun", "--nnodes=2", "--nproc-per-node=1", "--master-addr=127.0.0.1"]
    agent += [f"--master-port={port}", "--node-rank"]
    run = begin([*agent, "0", str(script)])
    other = [*agent, "1", str(script)]
    assert subprocess.run(other, env=environment(tmp_path, {}), timeout=ENDLESS).returncode == 1
    assert run.process.poll() is None
    run.process.terminate()
    code, _, err = run.ended()
    assert code == 128 + signal.SIGTERM, err
    assert run.report["ended_by"] == "signal"
