"""The folders that the doctors of several hosts have left, as of one job."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose.hosts import located
from ddpdoctor.evidence import DEATHS
from ddpdoctor.postmortem.material import NothingToRead
from ddpdoctor.postmortem.reading import read
from tests.patience import ENDLESS
from tests.postmortem.test_run_directory import log_of, write

LOST = {"type": "RuntimeError", "message": "Connection reset by peer", "frames": []}


def deadlock() -> dict[int, str]:
    return {0: log_of(0, "barrier", 8), 1: log_of(1, "all_reduce", 5)}


def killed() -> dict[int, str]:
    def begun(rank: int, then: list[dict[str, Any]]) -> str:
        start = {"k": "start", "t": 10.0, "pid": 77 + rank, "torch": "2", "world_size": 2}
        return "".join(json.dumps(each) + "\n" for each in ({**start, "boot": "b"}, *then))

    error = {**LOST, "place": None, "cause": None}
    return {0: begun(0, [{"k": "exception", "t": 11.0, "exception": error}]), 1: begun(1, [])}


def of_host(log: str, name: str, ahead: float, *, wall: bool = True) -> str:
    """The same log, as written on a host whose clock is so far ahead."""

    def moved(key: str, value: Any) -> Any:
        if isinstance(value, list):
            return [moved("", each) for each in value]
        if isinstance(value, dict):
            return {k: moved(k, v) for k, v in value.items()}
        return value + ahead if key in ("t", "since", "begun") else value

    lines = [moved("", json.loads(line)) for line in log.splitlines()]
    lines[0] |= {"boot": name, "host": name}
    if wall:
        lines[0]["wall"] = 1e9 + lines[0]["t"] - ahead
    return "".join(json.dumps(line) + "\n" for line in lines)


def without_hosts(findings: list[Finding]) -> list[dict[str, Any]]:
    told = [finding.model_dump() for finding in findings]
    for finding in told:
        for place in finding["places"]:
            place["hosts"] = ()
    return told


def test_a_folder_that_hosts_shared_is_read_as_theirs(tmp_path: Path) -> None:
    logs = deadlock()
    shared = write(tmp_path / "run", {0: of_host(logs[0], "node01", 0.0)})
    write(shared / "host-node02-7", {1: of_host(logs[1], "node02", 9.0)})
    (shared / "host-node03-8").mkdir()  # without ranks
    one = write(tmp_path / "a", {0: of_host(logs[0], "node01", 0.0)})
    other = write(tmp_path / "b", {1: of_host(logs[1], "node02", 9.0)})
    assert read(shared).judge() == read(one, other).judge() != []
    assert not any("holds no rank" in line for line in read(shared).not_seen)


@pytest.mark.parametrize("job", [deadlock, killed])
@pytest.mark.parametrize("ahead", [(0.0, 0.0), (0.0, 5000.0), (5000.0, 0.0)])
def test_the_folders_of_two_hosts_give_the_verdict_that_one_would(
    tmp_path: Path, job: Any, ahead: tuple[float, float]
) -> None:
    deaths = '{"pid": 78, "code": -9}\n{"pid": 77, "code": 1}\n' if job is killed else ""
    logs = job()
    one = write(tmp_path / "one", logs)
    first = write(tmp_path / "a", {0: of_host(logs[0], "node01", ahead[0])})
    second = write(tmp_path / "b", {1: of_host(logs[1], "node02", ahead[1])})
    for folder in (one, first, second):
        (folder / DEATHS).write_text(deaths)
    found = read(second, first)
    told = located(found.judge(), found.attempts[-1][1])
    assert without_hosts(told) == without_hosts(read(one).judge()) != []
    for place in (place for finding in told for place in finding.places):
        assert place.hosts == tuple(f"node0{rank + 1}" for rank in place.ranks)


def test_where_a_clock_is_not_known_nothing_is_proven(tmp_path: Path) -> None:
    logs = deadlock()
    first = write(tmp_path / "a", {0: of_host(logs[0], "node01", 0.0)})
    second = write(tmp_path / "b", {1: of_host(logs[1], "node02", 0.0, wall=False)})
    found = read(first, second)
    assert "the clock of rank 1 is not known: no deadlock is proven" in found.not_seen
    assert [finding.certainty for finding in found.judge()] in ([], ["evidence"])


def test_waits_that_did_not_overlap_are_no_deadlock(tmp_path: Path) -> None:
    logs = deadlock()
    first = write(tmp_path / "a", {0: of_host(logs[0], "node01", 0.0)})
    later = of_host(of_host(logs[1], "node02", 100.0), "node02", 0.0)  # it was later, not ahead
    second = write(tmp_path / "b", {1: later})
    assert not any(f.certainty == "proven" for f in read(first, second).judge())


def test_folders_of_two_jobs_are_refused_in_one_line(tmp_path: Path) -> None:
    one, other = write(tmp_path / "a", deadlock()), write(tmp_path / "b", deadlock())
    with pytest.raises(NothingToRead, match=r"rank 0 wrote both into .*: these are runs of diff"):
        read(one, other)
    (tmp_path / "c").mkdir()
    with pytest.raises(NothingToRead, match="each must be what a host's doctor left"):
        read(one, tmp_path / "c")


def test_the_command_names_the_hosts(tmp_path: Path) -> None:
    logs = deadlock()
    first = write(tmp_path / "a", {0: of_host(logs[0], "node01", 0.0)})
    second = write(tmp_path / "b", {1: of_host(logs[1], "node02", 9.0)})
    done = subprocess.run(
        [sys.executable, "-m", "ddpdoctor", "diagnose", str(first), str(second)],
        capture_output=True,
        text=True,
        timeout=ENDLESS,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "deadlock proven" in done.stdout
    assert "rank 0 on node01  train.py:8" in done.stdout
    assert "rank 1 on node02  train.py:5" in done.stdout
