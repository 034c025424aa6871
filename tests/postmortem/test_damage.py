"""Whatever has become of what ranks wrote: a bad line costs a line, and nothing is waited for."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from ddpdoctor.annotate import annotate
from ddpdoctor.evidence import DEATHS, REPORT, RankReader
from ddpdoctor.launch import ForkServer, Job
from ddpdoctor.observation import Observation
from ddpdoctor.postmortem.material import NothingToRead
from ddpdoctor.postmortem.reading import read
from ddpdoctor.report.formats import ReportFormat
from ddpdoctor.report.job import of_job
from ddpdoctor.report.lives import Attempt
from ddpdoctor.report.model import render
from tests.patience import ENDLESS
from tests.postmortem.test_run_directory import blocked, event, log_of, write

BODIES = Path(__file__).parent.parent / "watch" / "training_bodies.py"
DEEP = "[" * 100_000
ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1 << 70, 1.5, float("inf"), float("nan"), "", "x", [], [[]], {}, [1, "x"]),
    *({"a": 1}, "\ud800", [["/dev/zero", 1, "f"]], 10**400),
)


@pytest.fixture(scope="module")
def recorded(server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two ranks write who train."""
    folder = tmp_path_factory.mktemp("recorded")
    env = {"DDPDOCTOR_RUN_DIR": str(folder)}
    job = Job(f"{BODIES}:accumulate", 2, folder, env=env, watch=True)
    with server.launch(job) as world:
        assert world.wait(ENDLESS)
        assert [fate.exit_code for fate in world.poll()] == [0, 0]
    return folder


def judged(folder: Path) -> bool:
    """Do all that `diagnose` does, in each format; whether there was something to read."""
    try:
        material = read(folder)
    except NothingToRead:
        return False
    findings = annotate(material.judge())
    attempts = [Attempt.of(name, evidence) for name, evidence in material.attempts]
    report = of_job("diagnose", attempts, findings, subject=("x",))
    for format_ in ReportFormat:
        render(report, format_)
    return True


def damaged(text: str, dice: random.Random) -> str:
    """The log with lines changed, cut, repeated or reordered."""
    lines = text.splitlines()
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(lines))
        what = dice.randrange(7)
        if what == 0:
            lines[at] = lines[at][: dice.randrange(len(lines[at]) + 1)]
        elif what == 1:
            lines.insert(dice.randrange(len(lines)), lines[at])
        elif what == 2:
            dice.shuffle(lines)
        elif what == 3:
            letters = list(lines[at])
            for _ in range(3):
                if letters:
                    letters[dice.randrange(len(letters))] = chr(dice.randrange(32, 127))
            lines[at] = "".join(letters)
        elif what == 4:
            lines[at] = DEEP
        else:
            try:
                lines[at] = json.dumps(_with_odd_values(json.loads(lines[at]), dice))
            except (ValueError, TypeError, RecursionError):
                continue
    return "\n".join(lines) + "\n"


def _with_odd_values(document: Any, dice: random.Random) -> Any:
    """A value somewhere in a document is of another type, or is missing."""
    inside = [document]
    for each in inside:
        below = each.values() if isinstance(each, dict) else each
        inside += [value for value in below if isinstance(value, dict | list) and value]
    where = dice.choice(inside)
    key = dice.choice(list(where) if isinstance(where, dict) else range(len(where)))
    if dice.random() < 0.2:
        del where[key]
    else:
        where[key] = dice.choice(ODD)
    return document


@pytest.mark.parametrize("seed", range(8))
def test_whatever_stands_in_the_logs_they_are_read(
    recorded: Path, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    trained = [(recorded / f"rank-{rank}.log").read_text() for rank in (0, 1)]
    deadlocked = [log_of(0, "barrier", 8), log_of(1, "all_reduce", 5)]
    were_read = 0
    for number in range(40):
        texts = dice.choice((trained, deadlocked))
        folder = write(tmp_path / str(number), dict(enumerate(damaged(t, dice) for t in texts)))
        notes = [json.dumps({"pid": 999_000_000, "code": dice.choice(ODD)}) for _ in range(2)]
        (folder / DEATHS).write_text("\n".join([DEEP, *notes, "[]", "null"]))
        were_read += judged(folder)
        live = Observation(folder / "attempt-0-29500", 2)
        live.poll([])
        shutil.rmtree(folder)
    assert were_read > 30


def test_a_bad_line_costs_that_line_alone(tmp_path: Path) -> None:
    bad = [
        DEEP,
        "null",
        '{"k": "start", "t": "x", "pid": 1, "torch": "2", "world_size": 2, "boot": "b"}',
        event("start", 10.0, pid="many", torch="2", world_size=2, boot="b").strip(),
        event(
            "group", 1.0, name="g", ranks=[0, 7], backend="gloo", timeout=1.0, place=None
        ).strip(),
        event("group", 1.0, name="g", ranks=[0, "x"], backend="", timeout=1.0, place=None).strip(),
        event("alive", 1e400, waits=0.0, steps=1).strip(),
        event("alive", 2.0, waits=[], steps=1).strip(),
        event("alive", 2.0, waits=0.0, steps=10**400).strip(),
        event("sample", 2.0, optimizer={}, step=1, parameters=3).strip(),
    ]
    good = log_of(0, "barrier", 8)
    (tmp_path / "rank-0.log").write_text("\n".join(bad) + "\n" + good)
    (tmp_path / "rank-1.log").write_text(good)
    readers = [RankReader(tmp_path, rank, 2) for rank in (0, 1)]
    for reader in readers:
        reader.poll()
    spoilt, clean = (reader.evidence for reader in readers)
    spoilt.rank = clean.rank
    assert spoilt == clean
    assert readers[0].unreadable == len(bad)


def test_pipes_and_devices_where_a_file_should_be_are_not_waited_for(tmp_path: Path) -> None:
    folder = blocked(tmp_path / "run")
    os.mkfifo(folder / DEATHS)
    (folder / REPORT).symlink_to("/dev/zero")
    os.mkfifo(folder / "attempt-0-29500" / "rank-2.log")
    (folder / "attempt-0-29500" / "rank-3.log").symlink_to("/dev/zero")
    (folder / "attempt-0-29500" / "rank-4.log").symlink_to("rank-4.log")
    assert [finding.title for finding in read(folder).judge()] == ["deadlock"]
    live = Observation(folder / "attempt-0-29500", 5)
    live.poll([])
    assert [rank.pid != 0 for rank in live.evidence.ranks] == [True, True, False, False, False]


def test_a_world_is_as_large_as_most_of_its_ranks_say(tmp_path: Path) -> None:
    logs = {rank: log_of(rank, "barrier", 8, 3) for rank in range(3)}
    logs[1] = logs[1].replace('"world_size": 3', '"world_size": 99999')
    (_, evidence), *_ = read(write(tmp_path, logs)).attempts
    assert evidence.world_size == 3


def test_a_signal_without_a_name_is_told_by_its_number(tmp_path: Path) -> None:
    write(tmp_path, {0: event("start", 10.0, pid=77, torch="2", world_size=1, boot="b")})
    (tmp_path / DEATHS).write_text('{"pid": 77, "code": -40}')
    (finding,) = read(tmp_path).judge()
    assert "signal 40" in finding.cause


def test_a_log_is_read_from_a_pipe_that_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    log = (Path(__file__).parent / "logs" / "double-init.log").read_bytes()
    if os.fork() == 0:
        (tmp_path / "pipe").write_bytes(log)
        os._exit(0)
    (finding,) = read(tmp_path / "pipe").judge()
    os.wait()
    assert finding.code == "DDP102"


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ddpdoctor.postmortem.reading._PATIENCE", 1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NothingToRead, match="nobody has written to it for 1 s"):
        read(tmp_path / "pipe")
