"""What is damaged: real run folders, dumps, logs, sources, notebooks, baselines, settings."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ddpdoctor.evidence.run_directory import attempt_name
from ddpdoctor.launch import ForkServer, Job
from tests.patients import ward
from tests.postmortem import test_flight_recorder as recorder

_TESTS = Path(__file__).parents[1]
_PATIENTS = _TESTS / "patients"
_RUNS = ("barrier_on_rank0/buggy.py", "barrier_on_rank0/clean.py")
Files = dict[str, bytes]
"""By their names below the folder that they belong in."""


@dataclass(frozen=True)
class Sample:
    """Files that are as they should be, and the command that reads them."""

    kind: str
    files: Files
    arguments: tuple[str, ...]
    """With the folder as the working directory."""


def samples() -> dict[str, list[Sample]]:
    """All of them, by kind."""
    found: dict[str, list[Sample]] = {}
    for make in (_run_folders, _dumps, _logs, _sources, _notebooks, _baselines, _configurations):
        for sample in make():
            found.setdefault(sample.kind, []).append(sample)
    return found


def _run_folders() -> Iterator[Sample]:
    for files in recorded():
        yield Sample("run folder", files, ("diagnose", "run"))


@cache
def recorded() -> tuple[Files, ...]:
    """What the ranks of a job that hangs, and of one that ends, have left."""
    found = []
    with ForkServer(["ddpdoctor.watch.watching"]) as server:
        for name in _RUNS:
            run_dir = server.fresh_run_dir()
            job = Job(
                target=f"{Path(ward.__file__).resolve()}:run_script",
                nproc=3,
                run_dir=run_dir,
                kwargs={"script": str(_PATIENTS / name)},
                watch=True,
                cwd=run_dir,
            )
            with server.launch(job) as world:
                world.wait(6)
            logs = {each.name: each.read_bytes() for each in run_dir.glob("rank-*.log")}
            found.append({f"run/{attempt_name('0', '29500')}/{n}": t for n, t in logs.items()})
    return tuple(found)


def _dumps() -> Iterator[Sample]:
    for as_json in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            recorder.write(Path(folder), recorder.barrier_on_rank_0(), as_json=as_json)
            files = {f"dumps/{each.name}": each.read_bytes() for each in Path(folder).iterdir()}
        yield Sample("dumps", files, ("diagnose", "dumps"))


def _logs() -> Iterator[Sample]:
    for log in sorted((_TESTS / "postmortem" / "logs").glob("*.log")):
        yield Sample("log", {"job.log": log.read_bytes()}, ("diagnose", "job.log"))


def _scripts() -> list[bytes]:
    return [each.read_bytes() for each in sorted(_PATIENTS.glob("*/buggy.py"))]


_LINT = ("lint", "--no-cache", "--jobs", "1", "--exit-zero")


def _sources() -> Iterator[Sample]:
    for script in _scripts():
        yield Sample("source", {"train.py": script}, (*_LINT, "train.py"))
        yield Sample("source", {"train.py": script}, (*_LINT, "--diff", "--unsafe-fixes", "."))


def _notebooks() -> Iterator[Sample]:
    for script in _scripts()[::8]:
        cells = [
            {"cell_type": "code", "metadata": {}, "outputs": [], "source": part.splitlines(True)}
            for part in script.decode().split("\n\n\n")
        ]
        book = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        files = {"train.ipynb": json.dumps(book, indent=1).encode()}
        yield Sample("notebook", files, (*_LINT, "train.ipynb"))


def _baselines() -> Iterator[Sample]:
    script = (_PATIENTS / _RUNS[0]).read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_bytes(script)
        write = [sys.executable, "-m", "ddpdoctor", *_LINT, "--write-baseline", "known", "train.py"]
        subprocess.run(write, cwd=folder, check=True, capture_output=True)
        known = (Path(folder) / "known").read_bytes()
    files = {"train.py": script, "known": known}
    yield Sample("baseline", files, (*_LINT, "--baseline", "known", "train.py"))


def _configurations() -> Iterator[Sample]:
    script = (_PATIENTS / _RUNS[0]).read_bytes()
    settings = b"""\
[tool.ddpdoctor]
select = ["DDP4", "DDP201"]
ignore = ["DDP5"]
extend-select = ["DDP1"]
exclude = ["build", "*.tmp.py"]

[tool.ddpdoctor.per-file-ignores]
"tests/*" = ["DDP4"]
"""
    yield Sample("configuration", {"train.py": script, "pyproject.toml": settings}, (*_LINT, "."))


def damageable(sample: Sample) -> list[str]:
    """The files that are damaged: where a source is there to be read by a setting, the setting."""
    if sample.kind in ("baseline", "configuration"):
        return [name for name in sample.files if name != "train.py"]
    return list(sample.files)
