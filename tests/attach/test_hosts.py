"""A job on several hosts, looked at from outside: one verdict, of the ranks of all."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ddpdoctor.attach.hosts import attach_on, hosts_in, told
from ddpdoctor.attach.processes import FoundJob, RankProcess
from ddpdoctor.attach.session import Look, NothingFound
from ddpdoctor.attach.stacks import Sample
from ddpdoctor.evidence import Place
from tests.patience import ENDLESS

C10D = "/site-packages/torch/distributed/distributed_c10d.py"


def look(ranks: Sequence[int], call: str = "barrier", **changes: Any) -> Look:
    """What a host has to tell whose ranks wait; on all hosts they have the same numbers."""
    processes = [RankProcess(7 + n, rank, "train.py") for n, rank in enumerate(ranks)]
    line = {"barrier": 8, "all_reduce": 5}[call]
    frames = (Place("/home/u/train.py", line, "main"), Place(C10D, 99, call))
    samples = {each.pid: Sample(frames, 3) for each in processes}
    job = FoundJob("train.py (port 29500)", 4, tuple(processes))
    fields = {"jobs": (job,), "hidden": 0, "has_spy": True, "first": samples, "second": samples}
    return Look(**{"host": "", "pause": 1.0, **fields, **changes})


@pytest.fixture
def over(tmp_path: Path) -> str:
    """How hosts are reached that answer what stands in a file of their name."""
    return f"cat {tmp_path}/{{host}} --"


@pytest.fixture(autouse=True)
def _only_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has `cat` be given the file alone."""
    ask = subprocess.run

    def run(command: list[str], **options: Any) -> Any:
        assert command[-5:] == [sys.executable, "-m", "ddpdoctor", "attach", "--tell"]
        return ask(command[:-6], **options)

    monkeypatch.setattr(subprocess, "run", run)


def test_the_names_in_a_list_are_those_that_slurm_means() -> None:
    assert hosts_in("login,gpu[07-09,12],b[1-2]x") == [
        *("login", "gpu07", "gpu08", "gpu09", "gpu12", "b1x", "b2x"),
    ]
    assert hosts_in("node01") == ["node01"]
    assert hosts_in("10.0.0.1,10.0.0.2,10.0.0.1") == ["10.0.0.1", "10.0.0.2"]


def test_ranks_of_two_hosts_that_wait_apart_are_one_finding_that_names_the_hosts(
    tmp_path: Path, over: str
) -> None:
    (tmp_path / "node01").write_text(told(look([0, 1])))
    (tmp_path / "node02").write_text(told(look([2, 3], "all_reduce")))
    seen = attach_on("node[01-02]", over)
    (attempt,) = seen.attempts
    assert [(line.rank, line.host) for line in attempt.ranks] == [
        *((0, "node01"), (1, "node01"), (2, "node02"), (3, "node02")),
    ]
    (finding,) = seen.findings
    assert finding.certainty == "evidence"
    stood = {
        (place.ranks, place.hosts, place.place and place.place.line) for place in finding.places
    }
    assert stood == {((0, 1), ("node01",), 8), ((2, 3), ("node02",), 5)}
    assert seen.not_seen == ()


def test_a_host_that_does_not_answer_is_told_and_so_are_its_ranks(
    tmp_path: Path, over: str
) -> None:
    (tmp_path / "node01").write_text(told(look([0, 1])))
    (tmp_path / "node02").write_text('{"jobs": [{"name": 1}]}')
    seen = attach_on("node01,node02,node03", over)
    assert seen.not_seen == (
        "node02 gave no answer: exit status 0",
        f"node03 gave no answer: cat: {tmp_path}/node03: No such file or directory",
        "2 of the 4 ranks of train.py (port 29500) do not run on this machine, or not any more",
    )


def test_jobs_of_which_both_hosts_have_the_same_rank_are_two(tmp_path: Path, over: str) -> None:
    for name in ("node01", "node02"):
        (tmp_path / name).write_text(told(look([0, 1])))
    assert len(attach_on("node01,node02", over).attempts) == 2


def test_hosts_without_ranks_are_one_line(tmp_path: Path, over: str) -> None:
    (tmp_path / "node01").write_text(told(look([], jobs=())))
    with pytest.raises(NothingFound, match="none of 1 hosts runs a rank"):
        attach_on("node01", over)


def test_the_command_takes_hosts_or_processes_and_not_both() -> None:
    command = [sys.executable, "-m", "ddpdoctor", "attach", "--hosts", "a", "7"]
    done = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert "give --hosts or PID" in done.communicate(timeout=ENDLESS)[1]
    assert done.returncode == 2
    assert json.loads(told(look([0])))["jobs"][0]["world_size"] == 4
