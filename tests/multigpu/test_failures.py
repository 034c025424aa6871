"""What goes wrong on GPUs with nccl, and on the CPU with gloo, is seen for what it is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.multigpu.conftest import CARDS, as_launched, environment, on_gpus, on_gpus_all

Ranks = Callable[..., list[Any]]
NAMED = ("DDP101", "DDP201", "DDP301", "DDP501", "DDP504")
"""The five failures that the documents name, with the remedies that they need."""


def doctor(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ddpdoctor", *arguments],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


@on_gpus_all("code", *NAMED)
def test_a_named_failure_is_reproduced_and_recognised_and_its_fixes_hold(
    backend: str, code: str, tmp_path: Path
) -> None:
    if backend == "nccl" and CARDS < 2:
        pytest.skip("needs 2 GPUs: the ranks of `check` are those of one host")
    options = ("--nproc", "2", "--backend", backend, "--format", "json")
    done = doctor("check", "--select", code, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    verdicts = json.loads(done.stdout)["data"]["verdicts"]
    assert {v["status"] for v in verdicts if v["kind"] == "broken"} == {"recognised"}
    assert {v["status"] for v in verdicts if v["kind"] == "fix"} == {"holds"}


@pytest.mark.thorough
def test_dumps_of_a_real_hang_tell_which_collective_was_left_out(
    backend: str, tmp_path: Path
) -> None:
    command = [*as_launched(2), "hang", str(tmp_path), json.dumps({"backend": backend})]
    hung = subprocess.run(command, capture_output=True, check=False, env=environment())
    assert hung.returncode != 0
    assert len(list((tmp_path / "dumps").iterdir())) == 2
    told = doctor("diagnose", "dumps", "--format", "json", cwd=tmp_path)
    assert told.returncode == 1, told.stdout + told.stderr
    text = told.stdout
    assert "all_reduce" in text
    assert "broadcast" in text
    assert "bodies.py" in text


@on_gpus
def test_a_deadlock_is_proven_while_it_lasts(backend: str, tmp_path: Path) -> None:
    job = [*as_launched(2), "deadlock", str(tmp_path), json.dumps({"backend": backend})]
    done = doctor("run", "-o", "report.json", "--format", "json", "--", *job, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    [finding] = json.loads((tmp_path / "report.json").read_text())["findings"]
    assert (finding["code"], finding["certainty"]) == ("DDP401", "proven")
    assert any(each["place"]["file"].endswith("bodies.py") for each in finding["places"])
