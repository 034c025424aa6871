"""`ddpdoctor attach` to a job that hangs, and that it must leave as it is."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import psutil

from tests.chaos.scene import Case, Scene, command_line, on_busy_cores
from tests.chaos.warm import JOB

_LAUNCH = JOB.parents[1] / "run" / "launch.py"
_ENDING = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def cases() -> Iterator[Callable[[Any], Case]]:
    """One maker of each kind, which draws the details."""
    yield _looks
    yield lambda random: replace(on_busy_cores(_looks(random)), name="attach: busy cores")
    yield _rank_dies
    for number in _ENDING:
        yield partial(_ended, number)


def _hang(scene: Scene) -> None:
    """Start a job that hangs: real interpreters, for attach finds ranks by what they began with."""
    command = [sys.executable, str(_LAUNCH), "2", str(JOB), "barrier", "0", "3"]
    with (scene.home / "job").open("w") as said:
        job = subprocess.Popen(command, stdout=said, stderr=said)
    scene.burners.append(job.pid)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (scene.step(0) == 2 and scene.step(1) == 2):
        time.sleep(0.05)
    scene.burners += [scene.rank(0), scene.rank(1)]


def _doctor(scene: Scene) -> int:
    return command_line("attach", "--format=json", "-o", "report.json", str(scene.rank(0)),
                        str(scene.rank(1)))  # fmt: skip


def _job_is_unharmed(scene: Scene) -> Iterator[str]:
    for rank in range(2):
        try:
            status = psutil.Process(scene.rank(rank)).status()
        except psutil.Error:
            status = "gone"
        if status not in (psutil.STATUS_SLEEPING, psutil.STATUS_RUNNING):
            yield f"rank {rank} is {status} after attach"


def _looks(random: Any) -> Case:
    def judge(scene: Scene) -> Iterator[str]:
        yield from _job_is_unharmed(scene)
        report = scene.report()
        if scene.status != 1 or report is None or not report["findings"]:
            yield f"exit code {scene.status}: {report} {scene.text('err')[-300:]}"
            return
        lines = {p["place"]["line"] for p in report["findings"][0]["places"] if p.get("place")}
        marked = [n for n, t in enumerate(JOB.read_text().splitlines(), 1) if "# <-- barrier" in t]
        if not lines & set(marked):
            yield f"line {marked} is not among {lines}"

    return Case("attach: undisturbed", _doctor, lambda scene: None, judge, prepare=_hang)


def _rank_dies(random: Any) -> Case:
    def disturb(scene: Scene) -> None:
        time.sleep(scene.random.uniform(0, 1.5))
        scene.send(signal.SIGKILL, scene.rank(1))

    def judge(scene: Scene) -> Iterator[str]:
        if scene.status not in (0, 1, 2) or "Traceback" in scene.text("err"):
            yield f"exit code {scene.status}: {scene.text('err')[-500:]}"
        elif "fault of ours" in scene.text("err"):
            yield scene.text("err")

    return Case("attach: a rank dies", _doctor, disturb, judge, prepare=_hang)


def _ended(number: signal.Signals, random: Any) -> Case:
    def disturb(scene: Scene) -> None:
        time.sleep(scene.random.uniform(0, 1.8))
        if not scene.has_ended():
            scene.send(number, scene.doctor)

    def judge(scene: Scene) -> Iterator[str]:
        yield from _job_is_unharmed(scene)
        if scene.status not in (1, 128 + number) or "Traceback" in scene.text("err"):
            yield f"exit code {scene.status}: {scene.text('err')[-500:]}"

    return Case(f"attach: {number.name}", _doctor, disturb, judge, prepare=_hang)
