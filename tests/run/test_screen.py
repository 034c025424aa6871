"""`run --tui`: what is shown, and that the terminal is given back with all that the job printed."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

import pytest

from ddpdoctor import cli
from ddpdoctor.evidence import Collective, Fate, Group, RankEvidence, Stuck
from ddpdoctor.run.screen import Pace
from tests.run.conftest import environment

SHOWN, LEFT = b"\x1b[?1049h", b"\x1b[?1049l"


def rank(number: int, **known: object) -> RankEvidence:
    groups = {"0": Group("0", (0, 1, 2), "gloo", 1800.0, None)}
    return RankEvidence(number, 3, pid=100 + number, groups=groups, **known)  # type: ignore[arg-type]


def test_the_rank_that_is_furthest_behind_comes_first_with_what_it_does() -> None:
    call = Collective("0", 12, "barrier", 5.0)
    stuck = Stuck(5.0, 6.0, (), None, (call,))
    dead = Fate(2, 102, 3, None, 6.0)
    pace = Pace()
    pace.lines([rank(0), rank(1), rank(2)], 0.0)
    ranks = [rank(0, steps=40), rank(1, steps=30, stuck=stuck), rank(2, steps=40, fate=dead)]
    lines = pace.lines(ranks, 4.0)
    assert [line.rank for line in lines] == [1, 0, 2]
    assert (lines[0].behind, lines[0].pace, lines[0].doing) == (10, 7.5, "waits in barrier #12")
    assert (lines[1].behind, lines[1].pace, lines[1].doing) == (0, 10.0, "")
    assert lines[2].doing == "ended with 3"


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve(sys.executable, command, environment(folder, {"TERM": "xterm"}))
        self.shown = b""

    def wait_for(self, what: bytes) -> None:
        while what not in self.shown:
            self.shown += os.read(self._terminal, 4096)

    def type(self, keys: bytes) -> None:
        os.write(self._terminal, keys)

    def code(self) -> int:
        try:
            while data := os.read(self._terminal, 4096):
                self.shown += data
        except OSError:
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.mark.parametrize("leaves", [True, False])
def test_the_terminal_holds_in_the_end_what_the_job_printed(tmp_path: Path, leaves: bool) -> None:
    script = "echo early; echo wrong >&2; while [ ! -e go ]; do sleep 0.05; done; echo late; exit 5"
    doctor = [sys.executable, "-m", "ddpdoctor", "run", "--tui", "--", "bash", "-c", script]
    terminal = Terminal(tmp_path, doctor)
    terminal.wait_for(SHOWN)
    terminal.wait_for(b"wrong")
    if leaves:
        terminal.type(b"q")
        terminal.wait_for(LEFT)
    (tmp_path / "go").touch()
    assert terminal.code() == 5
    after = terminal.shown.partition(LEFT)[2].decode()
    told = [line for line in after.splitlines() if line in ("early", "wrong", "late")]
    assert told == ["early", "wrong", "late"]


def test_there_must_be_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["run", "--tui", "--", "true"]) == 2
    assert capsys.readouterr().err == "ddpdoctor: --tui needs a terminal\n"
