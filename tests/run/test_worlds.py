"""Attempts that torchrun does not count: it starts the ranks again where hosts come or go."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detectors import DETECTORS
from ddpdoctor.evidence import boot
from ddpdoctor.postmortem import reading
from ddpdoctor.run.worlds import Worlds
from tests.postmortem.test_run_directory import log_of, write


def attempt(run_dir: Path, port: int, agent: int, *, well: bool) -> None:
    """Started by that process; if it is not well, its ranks wait apart for ever."""
    living = os.getpid(), os.getppid()
    calls = ("barrier", 8), ("all_reduce", 5)
    logs = {rank: log_of(rank, *calls[rank], pid=living[rank]) for rank in (0, 1)}
    for rank, text in logs.items():
        start, _, rest = text.partition("\n")
        said = {**json.loads(start), "boot": boot(), "agent": agent}
        rest = rest.partition("\n")[0] + "\n" if well else rest
        logs[rank] = f"{json.dumps(said)}\n{rest}"
    write(run_dir, logs, f"attempt-0-{port}")


@pytest.mark.parametrize(("agents", "severity"), [((7, 7), "warning"), ((7, 8), "error")])
def test_what_is_wrong_with_an_attempt_that_the_same_agent_has_started_again_is_survived(
    tmp_path: Path, agents: tuple[int, int], severity: str
) -> None:
    """That of another, as of a script that starts torchrun twice, is as grave as ever."""
    worlds = Worlds(tmp_path, alone=True)
    attempt(tmp_path, 1001, agents[0], well=False)
    worlds.poll()
    (finding,) = worlds.findings()
    assert finding.severity == "error"
    attempt(tmp_path, 1002, agents[1], well=True)
    worlds.poll()
    first, second = worlds.all
    assert [first.evidence.restarted, second.evidence.restarted] == [severity == "warning", False]
    (told,) = worlds.findings()
    assert told.severity == severity
    worlds.close()


def test_a_fault_of_ours_is_told_beside_what_else_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(case: Case) -> Iterator[Finding]:
        raise ZeroDivisionError("in vain")

    monkeypatch.setattr("ddpdoctor.diagnose.DETECTORS", (fails, *DETECTORS))
    worlds = Worlds(tmp_path, alone=True)
    attempt(tmp_path, 1001, 7, well=False)
    worlds.poll()
    (finding,) = worlds.findings()
    assert finding.severity == "error"
    (world,) = worlds.all
    (told,) = [each for each in world.not_seen() if "fault of ours" in each]
    assert "ZeroDivisionError: in vain" in told
    worlds.close()
    read = reading.read(tmp_path)
    assert [each.code for each in read.judge()] == [finding.code]
    assert read.faults == [told]
