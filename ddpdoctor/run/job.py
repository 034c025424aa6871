"""The user's command: started in place, its signals handed on, ended on request."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from types import FrameType
from typing import Self

import psutil

from ddpdoctor.run import limits

_PATIENCE = 3.0
_HANDED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_SENT_BY_KERNEL = 0x80
_AT_REST = 1.0
"""Seconds after which a process that got through less work than `_AT_WORK` does nothing."""
_AT_WORK = 0.05
"""Seconds of CPU time."""
_BUSY = (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)
_TO_CONCLUDE = 10.0
"""Seconds after the job's end for which no signal cuts the report short."""


class CannotStart(Exception):
    """The command cannot be started; the message says why, in one line."""


def under_watch(run_dir: Path) -> dict[str, str]:
    """What the environment of a command must hold for its ranks to be watched."""
    injected = Path(__file__).parent.parent / "watch" / "inject"
    path = os.pathsep.join(filter(None, (str(injected), os.environ.get("PYTHONPATH", ""))))
    return {"PYTHONPATH": path, "DDPDOCTOR_RUN": str(run_dir)}


def _led(command: Sequence[str], extra: Mapping[str, str]) -> list[str]:
    """The command, in which what `env` is to set as PYTHONPATH begins with what is watched by."""
    injected = extra.get("PYTHONPATH", "").partition(os.pathsep)[0]
    words, is_set, before = list[str](), False, ""
    for word in command:
        name, given, value = word.partition("=")
        # Behind the program's name all words are its own.
        is_set = Path(word).name == "env" or (
            is_set and (bool(given) or word.startswith("-") or before in ("-u", "-C"))
        )
        own = is_set and given and name == "PYTHONPATH" and injected
        words.append(f"{name}={injected}{os.pathsep}{value}" if own else word)
        before = word
    return words


class RunningCommand:
    """A running command."""

    def __init__(
        self, command: Sequence[str], extra: Mapping[str, str], output: Path | None = None
    ) -> None:
        """Start it, with `extra` in its environment. Raises CannotStart.

        Where `output` is given, it prints there and has nothing to read; else all is as it was.
        """
        restore = limits.take_enough()
        file = output.open("ab") if output is not None else None
        stdin = subprocess.DEVNULL if output is not None else None
        try:
            self._process = subprocess.Popen(
                _led(command, extra),
                env={**os.environ, **extra},
                close_fds=False,
                stdin=stdin,
                stdout=file,
                stderr=file,
                preexec_fn=restore,
            )
        except OSError as error:
            if isinstance(error, FileNotFoundError) or not command[0]:
                raise CannotStart(f"there is no command {command[0]!r}") from None
            why = "it is a folder" if Path(command[0]).is_dir() else error.strerror
            raise CannotStart(f"cannot start {command[0]!r}: {why}") from error
        finally:
            if file is not None:
                file.close()
        self.pid = self._process.pid
        self._seen: dict[int, tuple[float, float]] = {}
        """By process: the CPU time that it had used when it was last seen to work, and when."""

    @property
    def status(self) -> int | None:
        """Its exit status, -n if signal n ended it, None while it runs."""
        return self._process.poll()

    def send(self, number: int) -> None:
        """Send a signal to the command itself, as it would have got it without the doctor."""
        self._process.send_signal(number)

    def kill_at_rest(self, processes: Set[int]) -> bool:
        """Kill those of these that the command has started, or are it, and that do nothing.

        Whether there was one. What is about to end works until it has, on a busy machine for long.
        """
        killed = False
        with contextlib.suppress(psutil.Error):
            command = psutil.Process(self.pid)
            for process in (command, *command.children(recursive=True)):
                if process.pid in processes and self._rests(process):
                    process.kill()
                    killed = True
        return killed

    def _rests(self, process: psutil.Process) -> bool:
        """Whether it has slept for a while."""
        used, now = sum(process.cpu_times()[:2]), time.monotonic()
        before, since = self._seen.setdefault(process.pid, (used, now))
        if used - before > _AT_WORK or process.status() in _BUSY:
            self._seen[process.pid] = (used, now)
            return False
        return now - since > _AT_REST

    def end(self, ranks: Iterable[int]) -> None:
        """End the command, all its descendants, and `ranks` wherever they hang."""
        others: list[psutil.Process] = []
        with contextlib.suppress(psutil.Error):
            others += psutil.Process(self.pid).children(recursive=True)
        for pid in set(ranks) - {self.pid} - {process.pid for process in others}:
            with contextlib.suppress(psutil.Error):
                others.append(psutil.Process(pid))
        for number in (signal.SIGTERM, signal.SIGKILL):
            there = [process.pid for process in others if process.is_running()]
            # Without a pause: a rank that outlives another for a moment has lost it, and says so.
            self._process.send_signal(number)
            for pid in there:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            _, others = psutil.wait_procs(others, _PATIENCE)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_PATIENCE)


class Signals:
    """Within its `with` block, signals to the doctor are the job's, as long as there is one."""

    def __init__(self) -> None:
        self.asked_to_end = 0
        """The signal by which somebody first asked the job to end; 0 if nobody has."""
        self.asked_at = 0.0
        """When that was."""
        # Those that the doctor was told to ignore reach neither, as without it.
        self._mine = {
            each
            for each in (*_HANDED_ON, *_FROM_TERMINAL)
            if signal.getsignal(each) is not signal.SIG_IGN
        }
        self._early: list[int] = []
        self._job: RunningCommand | None = None
        self._concluded = 0.0

    def __enter__(self) -> Self:
        # By handlers at first, and not by a mask, which the job would inherit. They stay, as a
        # thread that began before the mask may still be given a signal.
        self._handlers = {each: signal.signal(each, self._arrived) for each in self._mine}
        return self

    def go_to(self, job: RunningCommand) -> None:
        """From now on they are this job's, those that came while it was started included."""
        self._job = job
        signal.pthread_sigmask(signal.SIG_BLOCK, {*self._mine, signal.SIGCHLD})
        for number in self._early:
            self._arrived(number)

    def wait(self, timeout: float) -> None:
        """Wait that long, or until signals come; hand them on."""
        while (said := signal.sigtimedwait({*self._mine, signal.SIGCHLD}, timeout)) is not None:
            timeout = 0.0
            if said.si_signo != signal.SIGCHLD:
                self._hand_on(said.si_signo, from_terminal=said.si_code == _SENT_BY_KERNEL)

    def conclude(self) -> None:
        """The job has ended: what comes from now on does not cut its report short, for a while."""
        self._concluded = time.monotonic()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*self._mine, signal.SIGCHLD})

    def __exit__(self, *error: object) -> None:
        while signal.sigtimedwait(self._mine, 0):
            pass
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*self._mine, signal.SIGCHLD})
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _arrived(self, number: int, frame: FrameType | None = None) -> None:
        if self._job is None:
            self._early.append(number)
        elif not self._concluded:
            self._hand_on(number, from_terminal=os.isatty(0) or os.isatty(2))
        elif number in _ENDING and time.monotonic() - self._concluded > _TO_CONCLUDE:
            raise SystemExit(exit_code(-number))

    def _hand_on(self, number: int, *, from_terminal: bool) -> None:
        if number in _ENDING and not self.asked_to_end:
            self.asked_to_end, self.asked_at = number, time.monotonic()
        # What the terminal sends, it sends to the job as well.
        if self._job is not None and not (from_terminal and number in _FROM_TERMINAL):
            self._job.send(number)


def exit_code(status: int) -> int:
    """The status as a shell tells it: 128 + n for signal n."""
    return status if status >= 0 else 128 - status


def is_terminal() -> bool:
    """Whether a person may be looking at stderr."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
