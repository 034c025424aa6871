"""How ranks ended is told, though their parent has taken their exit status away, and why."""

from __future__ import annotations

import json
import platform
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ddpdoctor.evidence import IMPORTING, boot
from ddpdoctor.run.fates import Death, Deaths
from ddpdoctor.run.worlds import Worlds
from tests.patience import ENDLESS
from tests.postmortem.test_run_directory import write
from tests.run.conftest import ranks

KERNEL = tuple(int(part) for part in re.findall(r"\d+", platform.release())[:2])


@pytest.fixture
def deaths() -> Iterator[Deaths]:
    watched = Deaths(run_dir=None)
    yield watched
    watched.close()


@pytest.mark.skipif(KERNEL < (6, 15), reason="kernels before 6.15 forget how a reaped child ended")
@pytest.mark.parametrize(("end", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", -9)])
def test_a_status_is_known_though_the_parent_was_quicker(
    deaths: Deaths, end: str, code: int
) -> None:
    command = ["sh", "-c", f"read line; {end}"]
    children = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(20)]
    for child in children:
        deaths.watch(child.pid, time.monotonic())
    for child in children:
        child.communicate(b"now\n")  # reaps
    assert {death.pid: death.code for death in taken(deaths, 20)} == {
        child.pid: code for child in children
    }


@pytest.mark.skipif(KERNEL < (6, 15), reason="kernels before 6.15 forget how a reaped child ended")
def test_who_ends_before_its_log_is_read_was_watched_since_it_imported_torch(
    tmp_path: Path,
) -> None:
    child = subprocess.Popen(["sh", "-c", "read line; kill -ABRT $$"], stdin=subprocess.PIPE)
    (tmp_path / f"{IMPORTING}{child.pid}").touch()
    worlds = Worlds(tmp_path, alone=True)
    worlds.poll()
    child.communicate(b"now\n")  # reaps
    written = [("start", {"boot": boot(), "torch": "2", "world_size": 1}), ("exiting", {})]
    lines = ({"k": kind, "t": time.monotonic(), "pid": child.pid, **w} for kind, w in written)
    log = "".join(json.dumps(line) + "\n" for line in lines)
    write(tmp_path, {0: log}, "attempt-0-1001")
    deadline = time.monotonic() + ENDLESS
    while not worlds.all or worlds.all[0].evidence.ranks[0].fate is None:
        worlds.note_deaths()
        worlds.poll()
        assert time.monotonic() < deadline
    worlds.close()
    fate = worlds.all[0].evidence.ranks[0].fate
    assert (fate.exit_code, fate.signal) == (None, signal.SIGABRT)


def test_who_aborts_at_its_end_is_told_that_it_never_destroyed_its_group(
    ended: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    """In torch 2.13 a race with gloo's thread, which is there without a doctor too."""
    code, _, _ = ended(ranks(1, "never_destroyed"), "--format=json", "-o", "report.json")
    assert code == signal.SIGABRT
    (finding,) = json.loads((tmp_path / "report.json").read_text())["findings"]
    assert (finding["code"], finding["ranks"]) == ("DDP411", [0])


def taken(deaths: Deaths, number: int) -> list[Death]:
    found: list[Death] = []
    deadline = time.monotonic() + ENDLESS
    while len(found) < number:
        found += deaths.taken()
        assert time.monotonic() < deadline, found
        time.sleep(0.01)
    return found
