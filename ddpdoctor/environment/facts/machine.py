"""Where facts are read from, and how another program is asked for some."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from ddpdoctor.environment.model import Unknown
from ddpdoctor.environment.redaction import Redactor

T = TypeVar("T")


class NoAnswer(Exception):
    """A fact could not be found out; the message says why."""


@dataclass(frozen=True)
class Machine:
    """The machine to look at: this one, or a folder that stands in for a part of it."""

    environ: Mapping[str, str]
    root: Path = Path("/")
    """What /proc, /sys and /dev are looked up under."""
    patience: float = 60.0
    """Seconds after which another program is given up on."""

    @cached_property
    def redactor(self) -> Redactor:
        """What keeps this environment's secrets out of the facts."""
        return Redactor(self.environ)

    def read(self, path: str) -> str:
        """The text of a file under the root. Raises OSError."""
        return (self.root / path).read_text(encoding="utf-8", errors="replace").strip()

    def find(self, fact: Callable[[Machine], T]) -> T | Unknown:
        """The fact, or why it could not be found out.

        A doctor that stumbles over an odd machine is of no use on just the machines that need it,
        so nothing that happens while a fact is looked for can end the others.
        """
        try:
            return fact(self)
        except NoAnswer as error:
            return Unknown(unknown=self.redactor.text(str(error)))
        except Exception as error:
            return Unknown(unknown=self.redactor.text(f"{type(error).__name__}: {error}"))

    def ask(self, command: Sequence[str], seconds: float | None = None) -> tuple[int, str, str]:
        """Exit status, output and error output of a program; a negative status is a signal's.

        It runs under this machine's environment. Raises NoAnswer if it does not start, or does
        not end within `seconds` (default: the machine's patience).
        """
        return self.asking(command).answer(seconds)

    def asking(self, command: Sequence[str]) -> Question:
        """Start a program, to wait for its answer later. Raises NoAnswer if it does not start."""
        try:
            process = subprocess.Popen(
                command,
                env=dict(self.environ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise NoAnswer(f"{Path(command[0]).name} does not start: {error}") from error
        return Question(Path(command[0]).name, process, self.patience)


@dataclass(frozen=True)
class Question:
    """A program that is asked for a fact, and is at it.

    Its input ends when its answer is waited for: what must not begin before can wait for that.
    """

    name: str
    process: subprocess.Popen[bytes]
    patience: float

    def answer(self, seconds: float | None = None) -> tuple[int, str, str]:
        """What `Machine.ask` gives, from now on within `seconds`. Raises NoAnswer."""
        limit = self.patience if seconds is None else seconds
        try:
            output, errors = self.process.communicate(timeout=limit)
        except subprocess.TimeoutExpired as error:
            raise NoAnswer(f"{self.name} gave no answer in {limit:g} s") from error
        finally:
            self.drop()
        status = self.process.returncode
        return status, output.decode(errors="replace"), errors.decode(errors="replace")

    def drop(self) -> None:
        """End it, if it has not ended."""
        _end(self.process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGKILL)
    try:
        # Not for ever: behind a broken driver a process cannot even be killed.
        process.communicate(timeout=1)
    except subprocess.TimeoutExpired:
        return
