from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from tests.patience import ENDLESS

HERE = Path(__file__).parent
JOB = HERE / "job.py"
MARK = "DDPDOCTOR_TEST_FOLDER"
Doctor = Callable[..., subprocess.Popen[str]]


def environment(folder: Path, more: Mapping[str, str]) -> dict[str, str]:
    search = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    ours = {"PATH": search, "OMP_NUM_THREADS": "1", MARK: str(folder), "GLOO_SOCKET_IFNAME": "lo"}
    return {**os.environ, **ours, **more}


def ranks(number: int, what: str) -> list[str]:
    """The command that starts a job of `job.py` on so many ranks, which are forked."""
    return ["python", str(JOB), what, str(number)]


def interpreters(number: int, what: str) -> list[str]:
    """The same in the manner of mpirun: each rank imports torch, and is known before it joins."""
    return ["python", str(HERE / "launch.py"), str(number), str(JOB), what]


def living(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and (
                process.environ().get(MARK) == str(folder)
            ):
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Doctor]:
    """Starts a command under the doctor, in a folder of its own; nothing of it survives."""

    def begin(
        command: list[str], *options: str, doctor: bool = True, **more: str
    ) -> subprocess.Popen[str]:
        prefix = [sys.executable, "-m", "ddpdoctor", "run", *options, "--"] if doctor else []
        return subprocess.Popen(
            [*prefix, *command],
            cwd=tmp_path,
            env=environment(tmp_path, more),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    yield begin
    left = living(tmp_path)
    for process in left:
        process.kill()
    assert left == []


@pytest.fixture
def ended(start: Doctor) -> Callable[..., tuple[int, str, str]]:
    """Runs a command under the doctor to its end: exit code, stdout, stderr."""

    def run(command: list[str], *options: str, **more: str) -> tuple[int, str, str]:
        process = start(command, *options, **more)
        out, err = process.communicate(timeout=ENDLESS)
        return process.returncode, out, err

    return run
