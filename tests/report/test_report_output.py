"""Where output goes: files that are whole or not there, colour, and live progress."""

import io
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ddpdoctor.check.telling import CheckReport
from ddpdoctor.report import output
from ddpdoctor.report.model import Report
from ddpdoctor.report.output import OutputError
from ddpdoctor.report.progress import LiveProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("choice", "environment", "on_terminal", "coloured"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_colour_follows_the_choice_then_the_environment_then_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
    choice: output.ColourChoice,
    environment: dict[str, str],
    on_terminal: bool,
    coloured: bool,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert output.wants_colour(choice, Terminal() if on_terminal else io.StringIO()) is coloured


def test_a_file_is_written_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    output.check_writable(path)
    assert list(tmp_path.iterdir()) == []
    output.write_file(path, "first ✓\n")
    output.write_file(path, "second\n")
    assert path.read_text(encoding="utf-8") == "second\n"
    assert list(tmp_path.iterdir()) == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_write_that_fails_leaves_the_old_file_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.txt"
    path.write_text("old")

    def full_disk(self: Path, *_: object, **__: object) -> int:
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full_disk)
    with pytest.raises(OutputError, match=r"cannot write .*report\.txt: No space left on device"):
        output.write_file(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_checking_leaves_an_existing_file_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text("old")
    output.check_writable(path)
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("{}", "it is a folder"),
        ("{}/missing/report.txt", "there is no folder "),
        ("{}/file/report.txt", "Not a directory"),
        ("/proc/report.txt", "cannot write /proc/report.txt"),
    ],
)
def test_a_file_that_cannot_be_written_is_found_out_before(
    tmp_path: Path, path: str, why: str
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=why) as caught:
        output.check_writable(Path(path.format(tmp_path)))
    assert "\n" not in str(caught.value)


def test_a_disk_without_room_is_found_out_before(tmp_path: Path) -> None:
    program = "import sys; from ddpdoctor import cli; sys.exit(cli.run(sys.argv[1:]))"
    small = ["sh", "-c", 'ulimit -f 8; exec "$@"', "sh", sys.executable, "-Bc", program]
    for asked in (["-o", "report"], ["--run-dir", "runs"]):
        done = subprocess.run(
            [*small, "check", "--select", "DDP102", *asked],
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, b"")
        assert re.fullmatch(rb"ddpdoctor: cannot write (report|runs): .+ large\n", done.stderr)
        assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


def test_a_report_that_no_file_takes_any_more_is_told_on_stdout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full_disk(self: Path, *_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full_disk)
    report = Report(command="env", verdict="all that it took minutes to find")
    with pytest.raises(OutputError, match="No space left on device"):
        output.deliver(report, "json", tmp_path / "report.json", "auto")
    assert "all that it took minutes to find" in capsys.readouterr().out


@pytest.mark.parametrize("path", ["{}/file", "{}/file/runs", "/proc/runs"])
def test_a_run_folder_that_cannot_be_made_is_found_out_before(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot make the folder"):
        output.make_folder(Path(path.format(tmp_path)))


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    output.write_file(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "text"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    output.check_writable(pipe)
    output.write_file(pipe, "text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_progress_shows_what_is_running_and_is_gone_at_the_end(report: CheckReport) -> None:
    terminal = Terminal()
    with LiveProgress(2, colour=False, stream=terminal) as progress:
        progress.on_start("DDP101", "setup_before_parse")
        progress.on_start("DDP101", "parse_in_setup")
        progress.on_verdict(report.verdicts[0])
    shown = terminal.getvalue()
    assert "1/2" in shown
    assert "DDP101 parse_in_setup" in shown
    assert shown.endswith("\x1b[2K")  # the line is erased


def test_progress_says_nothing_where_there_is_no_terminal(report: CheckReport) -> None:
    stream = io.StringIO()
    with LiveProgress(2, colour=True, stream=stream) as progress:
        progress.on_start("DDP101", "setup_before_parse")
        progress.on_verdict(report.verdicts[0])
    assert stream.getvalue() == ""
