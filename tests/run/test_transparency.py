"""A watched job that is well behaves as if nobody watched."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.patience import ENDLESS, within
from tests.run.conftest import JOB, Doctor, environment, ranks
from tests.thorough import first_of


@pytest.mark.parametrize("what", first_of(["alone", "alone_in_a_group"]))
def test_a_job_writes_the_same_bytes_and_ends_with_the_same_code(
    start: Doctor, tmp_path: Path, what: str
) -> None:
    with_doctor = start(["python", str(JOB), what])
    told = with_doctor.communicate(timeout=ENDLESS)
    (tmp_path / "store").unlink(missing_ok=True)
    without = start(["python", str(JOB), what], doctor=False)
    assert told == without.communicate(timeout=ENDLESS)
    assert with_doctor.returncode == without.returncode == (3 if what == "alone" else 0)


def test_ranks_have_what_they_have_without_a_doctor_but_for_what_the_readme_names(
    start: Doctor, tmp_path: Path
) -> None:
    seen = []
    for doctor in (True, False):
        process = start(ranks(2, "state"), doctor=doctor)
        _, err = process.communicate(timeout=ENDLESS)
        assert process.returncode == 0, err
        files = [tmp_path / f"state-{rank}.json" for rank in (0, 1)]
        seen.append([json.loads(file.read_text()) for file in files])
    for watched, alone in zip(*seen, strict=True):
        added = [each for each in watched["descriptors"] if "/reports/run-" in each]
        assert [Path(each).name for each in added] == ["rank-N.log"], "its log"
        watched["descriptors"].remove(*added)
        for name in ("DDPDOCTOR_RUN", "PYTHONPATH"):
            watched["environment"].pop(name, None)
            alone["environment"].pop(name, None)
        for each in (watched, alone):
            del each["environment"]["MASTER_PORT"]  # another for each job
        assert watched == alone


def test_a_job_for_which_env_sets_pythonpath_is_watched_and_finds_what_is_its_own(
    start: Doctor, tmp_path: Path
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "ours.py").write_text("SAID = 'found'")
    asked = (
        "import sys, ours; print(ours.SAID, 'ddpdoctor.watch.arrival' in sys.modules, sys.argv[1])"
    )
    words = ["-u", "B", "A=1", "PYTHONPATH=lib", "python", "-c", asked, "PYTHONPATH=own"]
    process = start(["nice", "env", *words])
    out, err = process.communicate(timeout=ENDLESS)
    assert (process.returncode, out) == (0, "found True PYTHONPATH=own\n"), err


def by_bash(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment(folder, {}),
        capture_output=True,
        text=True,
        timeout=ENDLESS,
    )


def test_a_program_that_is_none_of_ours_keeps_its_code_and_its_signal(ended) -> None:
    assert ended(["bash", "-c", "echo told; exit 9"])[:2] == (9, "told\n")
    assert ended(["bash", "-c", "kill -SEGV $$"])[0] == 128 + signal.SIGSEGV


def test_standard_input_and_descriptors_reach_the_job(tmp_path: Path) -> None:
    (tmp_path / "three").write_text("from three")
    doctor = f"{sys.executable} -m ddpdoctor run --"
    done = by_bash(tmp_path, f"echo in | {doctor} bash -c 'cat; cat <&3' 3<three")
    assert (done.returncode, done.stdout) == (0, "in\nfrom three")


def on_a_terminal(tmp_path: Path, command: list[str], send: bytes = b"") -> tuple[int, str]:
    """The exit code of a command and what it shows; `send` is typed as soon as it is ready."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.chdir(tmp_path)
        os.execve(sys.executable, command, environment(tmp_path, {"TERM": "xterm"}))
    shown = b""
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:
            break
        if not data:
            break
        shown += data
        if send and shown.endswith(b"\r\n"):
            os.write(terminal, send)
            send = b""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


def test_one_line_at_the_foot_of_a_terminal_tells_how_the_job_is_doing(tmp_path: Path) -> None:
    doctor = [sys.executable, "-m", "ddpdoctor", "run", "--"]
    code, shown = on_a_terminal(tmp_path, [*doctor, *ranks(2, "paced")])
    assert code == 0
    assert "ddpdoctor: 2 of 2 ranks · step " in shown
    assert "steps/s · slowest rank 1" in shown
    assert "\x1b[0;23r" in shown, "the last line is kept out of what scrolls"
    assert shown.endswith("\x1b7\x1b[0;24r\x1b[24;0f\x1b[2K\x1b8"), "and is given back"


def test_ctrl_c_reaches_the_job_once_and_the_doctor_not_at_all(tmp_path: Path) -> None:
    doctor = [sys.executable, "-m", "ddpdoctor", "run", "--"]
    told = on_a_terminal(tmp_path, [*doctor, "python", str(JOB), "interrupted"], b"\x03")
    assert told == (5, "ready\r\n^Cinterrupted 1 time(s)\r\n")


def test_the_job_sees_a_terminal_and_gets_it_back_whole(tmp_path: Path) -> None:
    doctor = [sys.executable, "-m", "ddpdoctor", "run", "--"]
    script = "import sys; print(sys.stdin.isatty(), sys.stdout.isatty(), sys.stderr.isatty())"
    assert on_a_terminal(tmp_path, [*doctor, "python", "-c", script])[1].startswith(
        "True True True\r\n"
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_the_doctor_is_the_jobs(start: Doctor, number: int) -> None:
    script = "trap 'exit 41' TERM; trap 'exit 42' HUP; trap 'exit 43' INT; echo ready; "
    process = start(["bash", "-c", script + "while :; do sleep 0.05; done"])
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    expected = {signal.SIGTERM: 41, signal.SIGHUP: 42, signal.SIGINT: 43}
    process.communicate(timeout=ENDLESS)
    assert process.returncode == expected[signal.Signals(number)]


@pytest.mark.thorough
def test_a_stopped_job_goes_on_where_it_was(start: Doctor, tmp_path: Path) -> None:
    process = start(ranks(2, "long"))
    pids = [_pid(tmp_path, rank) for rank in (0, 1)]
    os.kill(pids[1], signal.SIGSTOP)
    assert not within(1.5, lambda: process.poll() is not None)
    os.kill(pids[1], signal.SIGCONT)
    (tmp_path / "enough").touch()
    _, err = process.communicate(timeout=ENDLESS)
    assert (process.returncode, err) == (0, "")


def _pid(folder: Path, rank: int) -> int:
    file = folder / f"pid-{rank}"
    assert within(60, lambda: file.exists() and file.read_text())
    return int(file.read_text())


def test_the_doctor_takes_more_descriptors_where_few_are_allowed_and_gives_the_job_no_more(
    tmp_path: Path,
) -> None:
    doctor = f"{sys.executable} -m ddpdoctor run --"
    job = "ulimit -Sn; ulimit -Hn; grep files /proc/$PPID/limits; exit 4"
    done = by_bash(tmp_path, f"ulimit -Sn 20; ulimit -Hn 300; {doctor} bash -c '{job}'")
    soft, hard, doctors = done.stdout.splitlines()
    assert (soft, hard) == ("20", "300")
    assert doctors.split()[3:5] == ["256", "300"]
    assert done.returncode == 4
    assert "DDP711 low-limit" in done.stderr, "the job has failed, and may have had too few"
    assert "may have 20 files open" in done.stderr


def test_a_deadlock_that_is_proven_is_not_laid_to_the_limit(tmp_path: Path) -> None:
    job = " ".join(ranks(2, "deadlock_by_hand"))
    done = by_bash(tmp_path, f"ulimit -Sn 35; {sys.executable} -m ddpdoctor run -- {job}")
    assert done.returncode == 1
    # Before, where the ranks have taken long to meet, as on a busy machine, that may be the cause.
    _, proven, verdict = done.stderr.partition("DDP401")
    assert proven
    assert "DDP711" not in verdict
