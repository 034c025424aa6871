"""The log of a rank: bounded, complete in what lasts, and never the job's problem."""

from __future__ import annotations

import json
import os
import resource
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ddpdoctor.evidence import CUT_SHORT, LOG_NAME, RankReader
from ddpdoctor.watch import log as log_module
from ddpdoctor.watch.log import Log

START = {"pid": 7, "boot": "", "torch": "2", "world_size": 1}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(log_module, "LIMIT", 20_000)
    monkeypatch.setattr(log_module, "LASTING_LIMIT", 5_000)
    return tmp_path / LOG_NAME.format(rank=0)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def collective(log: Log, seq: int) -> None:
    row = {"group": "0", "seq": seq, "op": "all_reduce", "begun": 1.0, "place": ["a.py", 1, "f"]}
    log.write("collective", rows=[row])


def test_a_log_never_exceeds_its_limit_and_keeps_what_lasts_and_what_was_last(path: Path) -> None:
    log = Log()
    log.open(path, **START)
    log.write("group", name="0", ranks=[0], backend="gloo", timeout=1.0, place=None)
    for seq in range(1, 2001):
        collective(log, seq)
        assert path.stat().st_size <= 20_000 + 200
    reader = RankReader(path.parent, 0, 0)
    reader.poll()
    assert reader.evidence.pid == 7
    assert list(reader.evidence.groups) == ["0"]
    assert reader.evidence.collectives[-1].seq == 2000
    assert reader.unreadable == 0


def test_a_reader_follows_a_log_that_is_begun_anew(path: Path) -> None:
    log = Log()
    log.open(path, **START)
    reader = RankReader(path.parent, 0, 0)
    for seq in range(1, 1501):
        collective(log, seq)
        if seq % 7 == 0:
            reader.poll()
    reader.poll()
    assert [c.seq for c in reader.evidence.collectives] == list(range(1, 1501))


def test_a_job_that_closes_our_descriptor_keeps_its_own_and_we_go_on(path: Path) -> None:
    log = Log()
    log.open(path, **START)
    descriptor = log._fd
    os.close(descriptor)
    theirs = os.open(path.parent / "theirs", os.O_WRONLY | os.O_CREAT)
    assert theirs == descriptor
    collective(log, 1)
    os.close(theirs)
    collective(log, 2)
    assert (path.parent / "theirs").read_text() == ""
    reader = RankReader(path.parent, 0, 0)
    reader.poll()
    assert [c.seq for c in reader.evidence.collectives] == [1, 2]


def test_a_log_that_finds_no_room_says_so_without_a_byte(path: Path) -> None:
    def room(number: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (number, resource.RLIM_INFINITY))

    log = Log()
    log.open(path, **START)
    before = path.stat().st_size
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    room(before + 10)
    try:
        collective(log, 1)
    finally:
        room(resource.RLIM_INFINITY)
        signal.signal(signal.SIGXFSZ, handler)
    reader = RankReader(path.parent, 0, 0)
    reader.poll()
    assert reader.evidence.cut_short
    assert reader.evidence.collectives == []
    collective(log, 2)
    assert path.stat().st_size == before + 10


def test_a_reader_hears_that_a_log_was_cut_short_though_no_line_was_added(path: Path) -> None:
    log = Log()
    log.open(path, **START)
    reader = RankReader(path.parent, 0, 0)
    reader.poll()
    assert not reader.evidence.cut_short
    path.chmod(CUT_SHORT)
    assert reader.poll()
    assert reader.evidence.cut_short
    assert not reader.poll()


def test_a_full_disk_ends_the_log_and_nothing_else(path: Path) -> None:
    log = Log()
    path.symlink_to("/dev/full")
    log.open(path)
    path.unlink()
    collective(log, 1)
    assert not path.exists()


def test_what_happens_before_the_rank_is_known_is_written_after_its_start(path: Path) -> None:
    log = Log()
    collective(log, 1)
    assert not path.exists()
    log.open(path, **START)
    kinds = [line.split('"')[3] for line in path.read_text().splitlines()]
    assert kinds == ["start", "collective"]


def test_what_is_left_for_later_comes_with_the_next_event_and_with_its_own_time(path: Path) -> None:
    log = Log()
    log.open(path, **START)
    log.write_later("left", place=None)
    assert [line["k"] for line in lines(path)] == ["start"]
    then = time.monotonic()
    collective(log, 1)
    assert [line["k"] for line in lines(path)] == ["start", "left", "collective"]
    assert lines(path)[1]["t"] < then
    log.write_later("left", place=None)
    log.write_rest()
    assert [line["k"] for line in lines(path)] == ["start", "left", "collective", "left"]
    log.write_later("left", place=None)
    log.silence()
    log.write_rest()
    assert len(lines(path)) == 4, "a process that is no rank any more writes nothing"


def test_who_destroys_another_group_has_not_left_that_one_yet(path: Path) -> None:
    log = Log()
    log.open(path, **START)
    reader = RankReader(path.parent, 0, 0)
    for _ in range(2):
        log.write("leaving", place=["a.py", 7, "f"], steps=0, forwards=0)
        reader.poll()
        assert (reader.evidence.left, reader.evidence.leaving is None) == (None, False)
        log.write("left", place=["a.py", 7, "f"])
        reader.poll()
        assert reader.evidence.left is not None


def test_a_forked_child_of_a_rank_is_silent_and_one_of_no_rank_may_become_one(path: Path) -> None:
    log, unknown = Log(), Log()
    log.open(path, **START)
    child = os.fork()
    if child == 0:
        collective(log, 1)
        unknown.open(path.with_name("rank-1.log"), **START)
        os._exit(0)
    os.waitpid(child, 0)
    assert len(path.read_text().splitlines()) == 1
    assert path.with_name("rank-1.log").exists()


def test_lines_of_many_threads_do_not_mix(path: Path) -> None:
    log = Log()
    log.open(path, **START)
    threads = [
        threading.Thread(target=lambda: [collective(log, n) for n in range(400)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader = RankReader(path.parent, 0, 0)
    reader.poll()
    assert reader.unreadable == 0
    assert reader.evidence.pid == 7


def test_lines_that_are_no_events_are_skipped_and_counted(path: Path) -> None:
    log = Log()
    log.open(path, **START)
    with path.open("ab") as file:
        file.write(b"\xff\x00garbage\n[1, 2]\n{}\n")
        file.write(b'{"k":"file-end","t":1,"number":9,"error":""}\n')
    collective(log, 1)
    reader = RankReader(path.parent, 0, 0)
    reader.poll()
    assert reader.unreadable == 4
    assert len(reader.evidence.collectives) == 1
