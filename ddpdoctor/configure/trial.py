"""Starts a launch file with a script of ours, to see that its ranks find and hear each other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ddpdoctor.configure import talk
from ddpdoctor.configure.files import LaunchFile
from ddpdoctor.configure.plan import Plan
from ddpdoctor.environment.redaction import safe_line

SECONDS = 120.0
"""After which a trial is ended: joining takes seconds, and a queue is not waited for longer."""
_ENV_OF_A_RANK = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a trial."""

    state: Literal["works", "fails", "not tried"]
    words: str
    """For the user, in one line."""


def attempt(file: LaunchFile, plan: Plan, text: str, seconds: float = SECONDS) -> Outcome:
    """Start this text with our script; what it says is in the outcome, nothing stays behind."""
    if why := file.refuse(plan):
        return Outcome("not tried", why)
    if not plan.here:
        return Outcome("not tried", f"this machine has not {plan.nproc} GPUs")
    with tempfile.TemporaryDirectory(prefix="ddpdoctor-config-") as folder:
        path = Path(folder, file.file_name)
        path.write_text(text, encoding="utf-8")
        script = (talk.__file__, *(("--cpu",) if plan.device == "cpu" else ()))
        begun = time.monotonic()
        code, said = _run(file, plan, path, script, seconds)
        return _judge(plan, code, said, time.monotonic() - begun)


def _run(
    file: LaunchFile, plan: Plan, path: Path, script: tuple[str, ...], seconds: float
) -> tuple[int | None, str]:
    start = file.start(plan, str(path), script)
    environ = {k: v for k, v in os.environ.items() if k not in _ENV_OF_A_RANK} | dict(start.environ)
    log = path.with_name("said.txt")
    with log.open("wb") as sink:
        process = subprocess.Popen(
            start.command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            cwd=path.parent,
            env=environ,
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process)
    # Slurm writes what the ranks say into a file of its own, beside the script.
    texts = [log, *sorted(path.parent.glob("*.out"))]
    return code, "\n".join(one.read_text(encoding="utf-8", errors="replace") for one in texts)


def _end(process: subprocess.Popen[bytes]) -> None:
    for number, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue


def _judge(plan: Plan, code: int | None, said: str, seconds: float) -> Outcome:
    told = _told(said)
    if code is None:
        return Outcome("fails", f"no rank had ended after {seconds:.0f} s")
    if told is None or code != 0:
        last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")
        return Outcome("fails", f"it ended with {code}: {safe_line(last)}")
    size, total = told.get("world_size"), told.get("sum")
    if size != plan.world_size or total != plan.world_size * (plan.world_size - 1) // 2:
        return Outcome("fails", f"{plan.world_size} ranks were to join, {size} did")
    ranks = "1 rank" if size == 1 else f"{size} ranks"
    return Outcome("works", f"{ranks} on {told.get('device')} met and talked, {seconds:.1f} s")


def _told(said: str) -> dict[str, object] | None:
    for line in said.splitlines():
        if talk.MARK in line:
            told = json.loads(line.split(talk.MARK, 1)[1])
            return told if isinstance(told, dict) else None
    return None
