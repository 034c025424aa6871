"""The report is delivered, whatever happens to the doctor's streams and whoever is impatient."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from ddpdoctor.run import job
from tests.patience import ENDLESS
from tests.run.conftest import JOB, Doctor, ranks


def test_signals_while_the_report_is_written_do_not_lose_it(start: Doctor, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # nobody reads it yet: the doctor waits there
    process = start(ranks(2, "killed"), "--format=json", "-o", "pipe")
    doctor = psutil.Process(process.pid)
    while not doctor.children():
        time.sleep(0.01)
    while doctor.children():
        time.sleep(0.01)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        process.send_signal(number)
        time.sleep(0.3)
    assert process.poll() is None
    report = json.loads((tmp_path / "pipe").read_text())
    assert report["findings"][0]["ranks"] == [1]
    _, err = process.communicate(timeout=ENDLESS)
    assert process.returncode == signal.SIGKILL, "the launcher's own code"
    assert "rank 1 ended by SIGKILL" in err


def test_a_report_that_nobody_takes_can_be_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "_TO_CONCLUDE", 0.0)
    with job.Signals() as signals:
        signals.go_to(job.RunningCommand([sys.executable, "-c", ""], {}))
        signals.conclude()
        with pytest.raises(SystemExit) as ended:
            signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 128 + signal.SIGTERM


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_streams_that_are_closed_stay_closed_for_the_job_and_nothing_takes_their_place(
    start: Doctor, tmp_path: Path, closed: str
) -> None:
    shown = "import os; open('shown', 'w').write(str(sorted(os.listdir('/proc/self/fd'))))"
    seen = []
    for doctor in (f"{sys.executable} -m ddpdoctor run --", ""):
        script = f'{doctor} {sys.executable} -c "{shown}" {closed}'
        process = start(["bash", "-c", script], doctor=False)
        out, err = process.communicate(timeout=ENDLESS)
        assert (process.returncode, out) == (0, "")
        assert not err or "2>&-" not in closed, "not a word in another's stream"
        seen.append((tmp_path / "shown").read_text())
    assert seen[0] == seen[1]


def test_what_is_found_reaches_its_file_though_stderr_is_closed(
    start: Doctor, tmp_path: Path
) -> None:
    doctor = f"{sys.executable} -m ddpdoctor run --format=json -o report.json --"
    command = f"{doctor} {' '.join(ranks(2, 'deadlock_by_hand'))} 2>&-"
    process = start(["bash", "-c", command], doctor=False)
    out, _ = process.communicate(timeout=ENDLESS)
    assert (process.returncode, out) == (1, "")
    (finding,) = json.loads((tmp_path / "report.json").read_text())["findings"]
    assert finding["places"][0]["place"]["file"] == str(JOB)
