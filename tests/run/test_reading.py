"""The source of a job is read beside it: its end waits for that no longer than a moment."""

from __future__ import annotations

import os
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from ddpdoctor.annotate.reading import read
from ddpdoctor.evidence import Evidence
from ddpdoctor.run import reading
from ddpdoctor.run.reading import Reading
from tests.annotate.test_reading import ALONE, LOADS, RESTORE, come_to


@pytest.fixture
def trained(tmp_path: Path) -> Evidence:
    file = tmp_path / "train.py"
    file.write_text(RESTORE.format(guard=ALONE), "utf-8")
    return come_to(file, LOADS)


def endlessly(files: list[str]) -> None:
    while files:
        pass


def test_what_was_read_beside_the_job_is_not_read_again(
    trained: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_FIRST", 0.0)
    monkeypatch.setattr(reading, "read", lambda files: read(files) if os.nice(0) > 18 else [])
    with closing(Reading()) as beside:
        others = {*psutil.Process().children()}  # what a fixture of other tests has started
        beside.go_on(trained)
        (child,) = {*psutil.Process().children()} - others
        while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        monkeypatch.setattr(reading, "read", endlessly)
        found, unread = beside.conclude(trained, [])
    assert ([each.code for each in found], unread) == (["DDP513"], [])
    assert {*psutil.Process().children()} <= others


def test_no_end_waits_for_what_takes_long_to_read_and_that_is_said(
    trained: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "read", endlessly)
    monkeypatch.setattr(reading, "_AT_THE_END", 0.05)
    others = {*psutil.Process().children()}
    with closing(Reading()) as beside:
        found, (unread,) = beside.conclude(trained, [])
    assert (found, Path(unread).name) == ([], "train.py")
    assert {*psutil.Process().children()} <= others


def test_what_is_too_much_to_read_is_left_and_said(
    trained: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_BYTES", 10)
    monkeypatch.setattr(reading, "read", endlessly)
    with closing(Reading()) as beside:
        assert beside.conclude(trained, [])[1] != []
