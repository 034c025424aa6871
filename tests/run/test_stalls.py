"""A stall is told while it lasts, as evidence, and withdrawn when it is over."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from ddpdoctor.catalog import Cure, Finding, Severity
from ddpdoctor.diagnose.detectors import stalled
from ddpdoctor.evidence import LOG_NAME
from ddpdoctor.run import audience
from ddpdoctor.run.audience import Audience, Watcher
from ddpdoctor.run.job import Signals
from ddpdoctor.run.session import RunOptions, Session, run
from ddpdoctor.run.worlds import WatchedWorld
from tests.patience import within
from tests.ports import free_port
from tests.run.conftest import HERE, Doctor, environment, interpreters, living, ranks
from tests.run.test_robustness import line_of

_BEATS = 10
"""So many signs of life while it waits, and the doctor has heard of it."""


def _waits(folder: Path, rank: int) -> bool:
    """Whether a rank has come to its collective, or to its joining, and has waited there."""
    logs = folder.glob(f"reports/*/attempt-*/{LOG_NAME.format(rank=rank)}")
    return any(log.read_text().count('"k":"still"') >= _BEATS for log in logs)


class Listener:
    """Notes what it is told, and acts once it was told of a stall."""

    def __init__(self, act: object) -> None:
        self.stalls: list[Finding] = []
        self.over: list[Finding] = []
        self.shown: set[str] = set()
        self._act = act

    def audience(self) -> Audience:
        return Audience(stalled=self._stalled, went_on=self.over.append, look=self._look)

    def _stalled(self, finding: Finding) -> None:
        self.stalls.append(finding)
        self._act()

    def _look(self, world: WatchedWorld, stall: Finding | None) -> None:
        self.shown.add(stall.title if stall is not None else "")


@pytest.fixture
def in_a_stall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Watches a job in which rank 1 is late, with less patience than a user has."""
    monkeypatch.setattr(stalled, "_LONG", 3.0)
    monkeypatch.setattr(stalled, "_WORTH_A_WORD", 3.0)
    for name, value in environment(tmp_path, {}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()

    def watch(act: object) -> tuple[Session, Listener]:
        listener = Listener(act)
        with Signals() as signals:
            options = RunOptions(ranks(2, "late"), tmp_path / "run")
            return run(options, signals, listener.audience()), listener

    yield watch
    (tmp_path / "enough").touch()
    within(20, lambda: not living(tmp_path))
    left = living(tmp_path)
    for each in left:
        each.kill()
    assert left == []


def test_a_stall_is_told_while_it_lasts_and_taken_back_when_the_job_goes_on(
    in_a_stall, tmp_path: Path
) -> None:
    session, listener = in_a_stall((tmp_path / "enough").touch)
    (stall,) = listener.stalls
    assert (stall.ranks, stall.certainty) == ((1,), "evidence")
    assert stall.cause.startswith("rank 0 waits for rank 1, computing at job.py:")
    assert abs(stall.place.line - line_of("the work")) <= 1
    assert listener.over == [stall]
    assert "stall" in listener.shown
    assert (session.status, session.findings) == (0, [])


class _Looked:
    """A job in which each look finds something else."""

    all = (object(),)
    lost = frozenset[str]()
    are_held_up = False

    def __init__(self, *found: list[Finding], have_met: bool = True) -> None:
        self._found = iter(found)
        self.have_met = have_met

    def findings(self) -> list[Finding]:
        return next(self._found)


def _limit() -> Finding:
    return _found("DDP711", "warning").model_copy(update={"has_lasted": True})


def _found(code: str, severity: Severity) -> Finding:
    return Finding(
        code=code,
        title="",
        severity=severity,
        certainty="evidence",
        ranks=(),
        places=(),
        cause="",
        cure=Cure(text=""),
    )


@pytest.mark.parametrize(
    ("last", "was_ended", "withdrawn"),
    [
        ([], False, ["DDP105"]),
        ([], True, []),
        ([_found("DDP404", "error")], False, []),
        ([_found("DDP105", "warning")], False, []),
    ],
)
def test_what_was_told_is_taken_back_by_the_end_unless_it_came_to_something_worse(
    last: list[Finding], was_ended: bool, withdrawn: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audience, "_DIAGNOSE_EVERY", 0.0)
    monkeypatch.setattr(audience, "_SHARE", 1e9)
    told: list[str] = []
    taken_back: list[str] = []
    watcher = Watcher(
        Audience(
            found=lambda each: told.append(each.code),
            withdrawn=lambda each: taken_back.append(each.code),
        )
    )
    early = [_found("DDP105", "warning")]
    looked = _Looked(early, early)
    watcher.look(looked)
    watcher.look(looked)
    watcher.conclude(last, was_ended=was_ended)
    assert (told, taken_back) == (["DDP105"], withdrawn)


@pytest.mark.parametrize(("have_met", "told"), [(False, ["DDP711"]), (True, [])])
def test_ranks_that_do_not_meet_under_a_low_limit_are_told_of_it_once(
    have_met: bool, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audience, "_MEETING_TAKES", 0.0)
    heard: list[str] = []
    monkeypatch.setattr(audience, "_DIAGNOSE_EVERY", 0.0)
    monkeypatch.setattr(audience, "_SHARE", 1e9)
    watcher = Watcher(Audience(found=lambda each: heard.append(each.code)), _limit())
    looked = _Looked([], [], have_met=have_met)
    watcher.look(looked)
    watcher.look(looked)
    assert heard == told


def test_a_limit_that_was_told_is_taken_back_as_the_ranks_meet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audience, "_MEETING_TAKES", 0.0)
    monkeypatch.setattr(audience, "_DIAGNOSE_EVERY", 0.0)
    monkeypatch.setattr(audience, "_SHARE", 1e9)
    heard: list[str] = []
    watcher = Watcher(
        Audience(
            found=lambda each: heard.append(f"found {each.code}"),
            withdrawn=lambda each: heard.append(f"withdrawn {each.code}"),
        ),
        _limit(),
    )
    looked = _Looked(*[[]] * 4, have_met=False)
    watcher.look(looked)
    looked.have_met = True
    for _ in range(3):
        watcher.look(looked)
    assert heard == ["found DDP711", "withdrawn DDP711"]


@pytest.mark.thorough
def test_a_job_that_is_ended_in_a_stall_has_that_finding(in_a_stall) -> None:
    session, listener = in_a_stall(lambda: signal.raise_signal(signal.SIGINT))
    assert session.interrupted
    assert not session.ended_by_doctor
    (stall,) = session.findings
    assert (stall.title, stall.ranks) == ("stall", (1,))
    assert "had waited for rank 1, computing at job.py:" in stall.cause
    assert listener.over == []


@pytest.mark.thorough
def test_an_interrupt_ends_ranks_that_wait_for_one_that_never_joins(
    start: Doctor, tmp_path: Path
) -> None:
    process = start(interpreters(2, "never_joined"), "--format=json", "-o", "report.json")
    while not all(_waits(tmp_path, rank) for rank in (0, 1)):
        time.sleep(0.02)
    for each in living(tmp_path):  # as a terminal does
        each.send_signal(signal.SIGINT)
    assert within(20, lambda: process.poll() is not None)
    assert process.returncode == 128 + signal.SIGINT
    assert living(tmp_path) == []
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["ended_by"] == "signal"
    assert [finding["code"] for finding in report["findings"]] == ["DDP105"]


def test_an_interrupt_ends_ranks_that_wait_where_their_starter_waits_for_them(
    start: Doctor, tmp_path: Path
) -> None:
    """It has heard of the interrupt, and joins its children before it ends."""
    spawned = ["python", str(HERE / "launchers" / "train.py"), "spawn:init"]
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    process = start(spawned, "--keep-going", "--format=json", "-o", "report.json", **meeting)
    while not all(_waits(tmp_path, rank) for rank in (0, 1)):
        time.sleep(0.02)
    for each in living(tmp_path):  # as a terminal does
        each.send_signal(signal.SIGINT)
    assert within(20, lambda: process.poll() is not None)
    assert process.returncode == 128 + signal.SIGINT
    assert living(tmp_path) == []
    report = json.loads((tmp_path / "report.json").read_text())
    assert [finding["code"] for finding in report["findings"]] == ["DDP105"]
