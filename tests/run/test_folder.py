"""Where runs are written: the last ten are kept, and none that goes on is ever taken away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ddpdoctor.evidence import boot
from ddpdoctor.run.folder import UsedBefore, chosen
from tests.network import can_make_networks
from tests.patience import ENDLESS
from tests.run.conftest import Doctor, ranks


def ended_run(reports: Path, number: int) -> Path:
    folder = reports / f"run-20200101-0000{number:02}-1"
    folder.mkdir(parents=True)
    (folder / "report.json").touch()
    return folder


def test_the_last_ten_runs_are_kept(ended, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    for number in range(12):
        ended_run(reports, number)
    (reports / "mine").mkdir()
    ended(["true"])
    left = sorted(path.name for path in reports.iterdir())
    assert "mine" in left
    assert len(left) == 11
    assert "run-20200101-000003-1" in left
    assert "run-20200101-000002-1" not in left


def test_a_run_that_goes_on_keeps_its_folder_however_many_come_after_it(
    start: Doctor, ended, tmp_path: Path
) -> None:
    process = start(ranks(2, "long"))
    while not (tmp_path / "pid-0").exists() or not (tmp_path / "pid-1").exists():
        time.sleep(0.02)
    (mine,) = (tmp_path / "reports").iterdir()
    # As of a long time ago, so that only the doctor's being alive speaks for it.
    for path in (*mine.rglob("*"), mine):
        os.utime(path, (1, 1))
    for number in range(12):
        later = ended_run(tmp_path / "reports", number)
        later.rename(later.with_name(later.name.replace("2020", "2120")))
    ended(["true"])
    assert mine.exists()
    (tmp_path / "enough").touch()
    _, err = process.communicate(timeout=ENDLESS)
    assert (process.returncode, err) == (0, "")


def test_a_folder_that_was_written_into_lately_is_kept_though_its_doctor_is_not_here(
    ended, tmp_path: Path
) -> None:
    """Of another host that shares the disk, or one that was killed while its job went on."""
    elsewhere, long_ago = (ended_run(tmp_path / "reports", number) for number in (0, 1))
    for folder in (elsewhere, long_ago):
        (folder / "report.json").unlink()
        (folder / "attempt-0-0").mkdir()
    os.utime(long_ago / "attempt-0-0", (1, 1))
    os.utime(long_ago, (1, 1))
    for number in range(2, 12):
        ended_run(tmp_path / "reports", number)
    ended(["true"])
    assert elsewhere.exists()
    assert not long_ago.exists()


def claimed(folder: Path, pid: int, where: str) -> Path:
    """A folder that a doctor has taken, with what its ranks wrote."""
    (folder / "attempt-0-0").mkdir(parents=True)
    (folder / "doctor").write_text(f"{pid} {where}")
    return folder


def test_a_folder_that_another_hosts_doctor_has_taken_is_shared_with_it(tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    assert chosen(alone) == alone
    for folder in (
        claimed(tmp_path / "elsewhere", 1, "another boot"),
        claimed(tmp_path / "here", os.getppid(), boot()),
    ):
        mine = chosen(folder)
        assert mine.parent == folder
        assert mine.name == f"host-{os.uname().nodename}-{os.getpid()}"
        assert mine.is_dir()


def test_a_folder_whose_run_is_over_is_refused_and_taken_again_if_it_is_empty(
    tmp_path: Path,
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    reported = claimed(tmp_path / "reported", 1, "another boot")
    (reported / "report.json").touch()
    for folder in (reported, claimed(tmp_path / "killed", ended.pid, boot())):
        with pytest.raises(UsedBefore):
            chosen(folder)
        (folder / "attempt-0-0").rmdir()
        assert chosen(folder) == folder
        assert (folder / "doctor").read_text() == f"{os.getpid()} {boot()}"


@pytest.mark.skipif(not can_make_networks(), reason="needs root: a disk is mounted read-only")
def test_a_run_folder_that_turns_read_only_costs_its_report_alone(ended, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    mounts = "mount -t tmpfs none run && exec python -m ddpdoctor run --run-dir run "
    job = "mount -o remount,ro run && kill -9 $$"
    command = f"{mounts} --format json -o report.json -- bash -c '{job}'"
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-c", command],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(os.sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=ENDLESS,
        check=False,
    )
    assert done.returncode == 128 + signal.SIGKILL
    assert json.loads((tmp_path / "report.json").read_text())["signal"] == signal.SIGKILL
    (line,) = [line for line in done.stderr.splitlines() if "cannot write" in line]
    assert line.endswith("run/report.json: Read-only file system")
    assert "fault of ours" not in done.stderr
