"""Run directories as `ddpdoctor run` leaves them, whole and not."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ddpdoctor.evidence import DEATHS, REPORT, boot
from ddpdoctor.postmortem.material import Material
from ddpdoctor.postmortem.reading import read
from ddpdoctor.report.job import of_job
from ddpdoctor.report.lives import Attempt
from ddpdoctor.report.model import Report, render
from tests.patience import ENDLESS

WAIT = ["/site-packages/torch/distributed/distributed_c10d.py", 5356, "barrier"]


def event(kind: str, time: float, **fields: Any) -> str:
    return json.dumps({"k": kind, "t": time, **fields}) + "\n"


def log_of(rank: int, op: str, line: int, world: int = 2, pid: int = 0) -> str:
    """A rank that is blocked in its first collective."""
    place = ["/home/u/train.py", line, "main"]
    call = {"group": "0", "seq": 1, "op": op, "begun": 12.0, "place": place}
    ranks = list(range(world))
    return "".join(
        (
            event(
                "start", 10.0, pid=pid or 999_000_000 + rank, torch="2", world_size=world, boot="b"
            ),
            event("group", 10.2, name="0", ranks=ranks, backend="gloo", timeout=1800, place=None),
            event(
                "stuck",
                12.5,
                since=12.1,
                stack=[place, WAIT],
                place=place,
                waiting=[call],
                issued={"0": 1},
            ),
            event("still", 14.0),
        )
    )


def write(folder: Path, logs: dict[int, str], attempt: str = "attempt-0-29500") -> Path:
    (folder / attempt).mkdir(parents=True)
    for rank, text in logs.items():
        (folder / attempt / f"rank-{rank}.log").write_text(text)
    return folder


def blocked(folder: Path, attempt: str = "attempt-0-29500") -> Path:
    return write(folder, {0: log_of(0, "barrier", 8), 1: log_of(1, "all_reduce", 5)}, attempt)


def material(folder: Path) -> Material:
    return read(folder)


def test_a_deadlock_that_was_ended_is_found_again(tmp_path: Path) -> None:
    (finding,) = material(blocked(tmp_path)).judge()
    assert (finding.title, finding.certainty) == ("deadlock", "proven")
    assert {place.place.line for place in finding.places if place.place} == {5, 8}


def test_an_attempt_itself_can_be_named(tmp_path: Path) -> None:
    (finding,) = material(blocked(tmp_path) / "attempt-0-29500").judge()
    assert finding.title == "deadlock"


@pytest.mark.parametrize("written", [1, 2_000_000_000])
def test_the_last_attempt_is_diagnosed_and_the_others_are_listed(
    written: int, tmp_path: Path
) -> None:
    blocked(tmp_path)
    group = {"name": "0", "ranks": [0], "backend": "gloo", "timeout": 1800, "place": None}
    well = event("start", 20.0, pid=1, torch="2", world_size=1, boot="")
    well += event("group", 20.5, **group) + event("exiting", 21.0)
    write(tmp_path, {0: well}, "attempt-1-29500")
    os.utime(tmp_path / "attempt-0-29500" / "rank-0.log", (written, written))
    os.utime(tmp_path / "attempt-0-29500" / "rank-1.log", (written, written))
    found = material(tmp_path)
    assert [name for name, _ in found.attempts] == ["attempt-0-29500", "attempt-1-29500"]
    assert found.judge() == []


def test_ranks_that_were_started_again_and_never_met_are_diagnosed(tmp_path: Path) -> None:
    blocked(tmp_path)
    place = ["/home/u/train.py", 3, "main"]
    joining = {"place": place, "wanted": 2, "launcher": "torchrun", "meeting": "localhost:29500"}
    stuck = {"since": 40.5, "stack": [place], "place": place, "waiting": [], "issued": {}}
    logs = {
        rank: event("start", 40.0, pid=rank + 1, torch="2", world_size=2, boot="")
        + event("joining", 40.1, started=2, started_at=None, **joining)
        + event("stuck", 40.8, **stuck)
        + event("still", 90.0)
        for rank in (0, 1)
    }
    found = material(write(tmp_path, logs, "attempt-1-29500"))
    assert [finding.title for finding in found.judge()] == ["restart-meets-old-addresses"]


def test_a_world_that_never_joined_is_not_taken_for_the_job(tmp_path: Path) -> None:
    blocked(tmp_path)
    lone = event("start", 30.0, pid=1, torch="2", world_size=1, boot="") + event("exiting", 31.0)
    write(tmp_path, {0: lone}, "attempt-0-0")
    found = material(tmp_path)
    assert found.attempts[-1][0] == "attempt-0-29500"
    assert [finding.title for finding in found.judge()] == ["deadlock"]


def test_torn_lines_missing_ranks_and_foreign_files_are_told_and_passed_over(
    tmp_path: Path,
) -> None:
    logs = {
        0: log_of(0, "barrier", 8, 3) + '{"k": "sti',
        1: "junk\n" + log_of(1, "all_reduce", 5, 3),
    }
    write(tmp_path, logs)
    (tmp_path / "attempt-0-29500" / "rank-x.log").write_text("mine")
    (tmp_path / "attempt-0-29500" / "rank-7.log.bak").write_text("mine")
    (tmp_path / "notes.txt").write_bytes(b"\0\1")
    found = material(tmp_path)
    assert "rank 2 of 3 wrote nothing" in found.not_seen
    assert "lines that cannot be read stand in the log of rank 1" in found.not_seen
    assert [finding.title for finding in found.judge()] == ["deadlock"]


def test_the_note_of_a_parent_tells_how_a_rank_ended(tmp_path: Path) -> None:
    start = event("start", 10.0, pid=77, torch="2", world_size=1, boot="b")
    write(tmp_path, {0: start})
    (tmp_path / DEATHS).write_text('{"pid": 77, "code": -9}\nnonsense\n{"pid": 1}\n')
    (finding,) = material(tmp_path).judge()
    assert (finding.title, finding.ranks) == ("rank-died", (0,))


def test_a_kill_is_the_cause_if_the_others_only_lost_their_peer(tmp_path: Path) -> None:
    def start(rank: int) -> str:
        return event("start", 10.0, pid=77 + rank, torch="2", world_size=2, boot="b")

    lost = {"type": "RuntimeError", "message": "Connection reset by peer", "frames": []}
    raised = event("exception", 11.0, exception={**lost, "place": None, "cause": None})
    write(tmp_path, {0: start(0) + raised, 1: start(1)})
    (tmp_path / DEATHS).write_text('{"pid": 78, "code": -9}\n{"pid": 77, "code": 1}\n')
    (finding,) = material(tmp_path).judge()
    assert (finding.title, finding.ranks) == ("rank-died", (1,))


def test_ranks_that_were_ended_while_they_waited_have_not_died_of_it(tmp_path: Path) -> None:
    blocked(tmp_path)
    lines = [json.dumps({"pid": 999_000_000 + rank, "code": -15}) for rank in (0, 1)]
    (tmp_path / DEATHS).write_text("\n".join(lines))
    assert [finding.title for finding in material(tmp_path).judge()] == ["deadlock"]


def test_the_report_of_the_run_tells_best_how_ranks_ended(tmp_path: Path) -> None:
    write(tmp_path, {0: event("start", 10.0, pid=77, torch="2", world_size=1, boot="b")})
    ((name, evidence),) = material(tmp_path).attempts
    report = of_job("run", [Attempt.of(name, evidence)], [], subject=("python",))
    line = report.attempts[-1].ranks[0].model_copy(update={"signal": 11, "ended_at": 15.0})
    attempt = report.attempts[0].model_copy(update={"ranks": (line,)})
    report = report.model_copy(update={"attempts": (attempt,)})
    (tmp_path / REPORT).write_text(render(report, "json"))
    (finding,) = material(tmp_path).judge()
    assert "SIGSEGV" in finding.cause


@pytest.mark.parametrize(
    "came",
    [
        {"exception": 14.1, "moved": 14.2},
        {"thrown": 14.1, "moved": 14.2},
        {"thrown": 14.1, "moved": 14.2, "exception": 14.3},
    ],
    ids=" ".join,
)
def test_a_rank_that_lost_those_whom_the_doctor_ended_has_waited_for_them(
    tmp_path: Path, came: dict[str, float]
) -> None:
    lost = {"type": "RuntimeError", "message": "Connection closed by peer", "frames": []}
    given = {"exception": {**lost, "place": None, "cause": None}, "out_of": "all_reduce"}
    end = [event(kind, at, **({} if kind == "moved" else given)) for kind, at in came.items()]
    # It had waited elsewhere before, and for longer.
    before = event("stuck", 11.0, since=10.3, stack=[["a.py", 1, "f"]], place=["a.py", 1, "f"])
    start, rest = log_of(1, "all_reduce", 5).split('{"k": "stuck"')
    short = '{"k": "stuck"' + rest.replace("12.1", "13.8").replace('"t": 12.5', '"t": 13.9')
    blocked(tmp_path)
    log = tmp_path / "attempt-0-29500" / "rank-1.log"
    log.write_text("".join([start, before, event("moved", 12.0), short, *end]))
    ((name, evidence),) = material(tmp_path).attempts
    report = of_job("run", [Attempt.of(name, evidence)], [], subject=("python",))
    (tmp_path / REPORT).write_text(render(report.model_copy(update={"ended_by": "doctor"}), "json"))
    (finding,) = material(tmp_path).judge()
    assert (finding.title, finding.certainty) == ("deadlock", "proven")
    assert {place.place.line for place in finding.places if place.place} == {5, 8}


INTERRUPTED = {"type": "KeyboardInterrupt", "message": "", "frames": [], "place": None}
SIGNALLED = {**INTERRUPTED, "type": "SignalException", "message": "Process 7 got signal: 2"}
CLOSED = {**INTERRUPTED, "type": "RuntimeError", "message": "Connection closed by peer"}


def ended(kind: str, time: float, what: dict[str, Any] = INTERRUPTED) -> str:
    out_of = {"out_of": "collective"} if kind == "thrown" else {}
    return event(kind, time, exception={**what, "cause": None}, **out_of)


@pytest.mark.parametrize(
    "last",
    [
        ended("exception", 14.1) + event("exiting", 14.2),
        event("moved", 14.1) + ended("exception", 16.0) + event("exiting", 16.0),
        ended("exception", 14.1, SIGNALLED) + event("exiting", 14.2),
        ended("thrown", 14.1, CLOSED) + event("moved", 14.2),
        ended("exception", 14.1, CLOSED) + event("exiting", 14.2),
        event("moved", 14.1),
    ],
    ids=[
        "interrupted",
        "with a long way out",
        "signalled",
        "killed",
        "has lost the other",
        "killed at once",
    ],
)
@pytest.mark.parametrize("ranks", [(1,), (0, 1)], ids=str)
def test_a_deadlock_that_somebody_else_has_ended_is_found_again(
    tmp_path: Path, last: str, ranks: tuple[int, ...]
) -> None:
    blocked(tmp_path)
    for rank in ranks:
        with (tmp_path / "attempt-0-29500" / f"rank-{rank}.log").open("a") as log:
            log.write(last)
    (finding,) = material(tmp_path).judge()
    assert (finding.title, finding.certainty) == ("deadlock", "proven")
    assert {place.place.line for place in finding.places if place.place} == {5, 8}


def test_ranks_that_were_ended_as_one_was_late_were_in_no_deadlock(tmp_path: Path) -> None:
    # It had left its call before the other came to wait, and had not called anything since.
    moved = event("moved", 12.4) + ended("exception", 16.0) + event("exiting", 16.1)
    left = log_of(1, "all_reduce", 5).replace('"t": 12.5', '"t": 12.2')
    left = left.replace(event("still", 14.0), moved)
    late = log_of(0, "barrier", 8).replace("12.1", "12.3").replace("12.0", "12.2")
    write(tmp_path, {0: late + ended("exception", 16.0), 1: left})
    assert material(tmp_path).judge() == []


def test_a_job_that_was_interrupted_with_nothing_wrong_has_nothing(tmp_path: Path) -> None:
    group = {"name": "0", "ranks": [0, 1], "backend": "gloo", "timeout": 1800, "place": None}
    waits = log_of(0, "barrier", 8)
    works = event("start", 10.0, pid=1, torch="2", world_size=2, boot="b")
    works += event("group", 10.2, **group) + ended("exception", 14.0) + event("exiting", 14.0)
    late = event("still", 17.0) + ended("exception", 17.1, CLOSED) + event("exiting", 17.2)
    write(tmp_path, {0: waits + late, 1: works})
    (tmp_path / DEATHS).write_text('{"pid": 999000000, "code": 1}\n{"pid": 1, "code": -2}\n')
    assert material(tmp_path).judge() == []


def test_ranks_that_were_interrupted_have_not_done_all_their_work(tmp_path: Path) -> None:
    group = {"name": "0", "ranks": [0, 1], "backend": "gloo", "timeout": 1800, "place": None}
    logs = {
        rank: event("start", 10.0, pid=rank + 1, torch="2", world_size=2, boot="b")
        + event("group", 10.2, **group)
        + ended("exception", 14.0)
        + event("exiting", 14.0)
        for rank in (0, 1)
    }
    assert material(write(tmp_path, logs)).judge() == []


def test_a_rank_that_called_something_since_was_in_no_deadlock(tmp_path: Path) -> None:
    went_on = {"group": "0", "seq": 2, "op": "barrier", "begun": 14.2, "place": None}
    blocked(tmp_path)
    with (tmp_path / "attempt-0-29500" / "rank-1.log").open("a") as log:
        log.write(event("moved", 14.1) + event("collective", 14.2, rows=[went_on]))
        log.write(ended("exception", 16.0) + event("exiting", 16.1))
    assert material(tmp_path).judge() == []


def test_a_job_that_still_runs_is_said_to(tmp_path: Path) -> None:
    start = event("start", 10.0, pid=os.getpid(), torch="2", world_size=1, boot=boot())
    write(tmp_path, {0: start})
    assert material(tmp_path).not_seen == ("rank 0 still runs: what is said here may change",)


def command(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "ddpdoctor", "diagnose", *arguments],
        input=stdin,
        capture_output=True,
        timeout=ENDLESS,
        check=False,
    )


def test_the_command_tells_the_deadlock_and_exits_with_1(tmp_path: Path) -> None:
    done = command(str(blocked(tmp_path)))
    assert done.returncode == 1, done.stderr
    assert "DDP400 deadlock · deadlock proven\n" in done.stdout.decode()
    assert b"train.py:8" in done.stdout
    assert done.stderr == b""


def test_the_command_reads_a_log_from_stdin_and_may_be_told_not_to_fail(tmp_path: Path) -> None:
    log = Path(__file__).parent / "logs" / "double-init.log"
    target = tmp_path / "report.json"
    done = command(
        "-", "--format", "json", "-o", str(target), "--fail-on", "never", stdin=log.read_bytes()
    )
    assert done.returncode == 0, done.stderr
    report = Report.model_validate_json(target.read_text())
    assert (report.command, report.findings[0].code) == ("diagnose", "DDP102")


def test_a_report_is_told_from_a_log(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command(str(blocked(tmp_path / "run")), "--format", "json", "-o", str(report))
    done = command(str(report))
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"report.json is a report already: name the folder of the run" in done.stderr


@pytest.mark.parametrize("name", ["gone", "empty", "folder", "unreadable.bin"])
def test_what_cannot_be_diagnosed_is_one_line_and_exit_code_2(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "unreadable.bin").write_bytes(os.urandom(5000))
    done = command(str(tmp_path / name))
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"\n") == 1
