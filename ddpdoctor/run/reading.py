"""Reads the source of a job beside it: nobody waits for that, and the cores are the job's."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from ddpdoctor.annotate.reading import executed, explained, is_unexplained, read, unobserved
from ddpdoctor.catalog import Finding
from ddpdoctor.evidence import Evidence

if TYPE_CHECKING:
    from ddpdoctor.lint.rule import Diagnostic

_FIRST = 10.0
"""Seconds after which a job is read while it goes on; a shorter one is read at its end."""
_BYTES = 1 << 20
"""Of source that is read: what ranks came to first."""
_CORE = 60
"""Seconds of a core that one reading may take."""
_AT_THE_END = 1.0
"""Of these, so many while the end of the job waits for it."""
_BUSY = 3.0
"""Seconds that it waits at the most, where others have the cores."""


class Reading:
    """What lint says of the files that ranks execute."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._next = self._began + _FIRST
        self._reader: _Reader | None = None
        self._read: frozenset[str] = frozenset()
        self._said: list[Diagnostic] = []

    def go_on(self, evidence: Evidence) -> None:
        """Read beside the job what ranks have come to since; ever more rarely."""
        if (now := time.monotonic()) < self._next:
            return
        self._next = now + (now - self._began)
        self._take()
        wanted = _within_budget(executed(evidence))
        if self._reader is None and not self._read.issuperset(wanted):
            self._reader = _Reader(wanted, gives_way=True)

    def conclude(
        self, evidence: Evidence, found: Iterable[Finding]
    ) -> tuple[list[Finding], list[str]]:
        """What only the source shows of a job that has ended, and the files not read for it."""
        lines = self._come_to_its_end(evidence)
        left = [file for file in lines if file not in self._read]
        return unobserved(lines, self._said, found), left

    def explain(self, evidence: Evidence, found: Sequence[Finding]) -> list[Finding]:
        """The findings, with what the source shows of where they come from."""
        if not any(map(is_unexplained, found)):
            return list(found)
        self._come_to_its_end(evidence)
        return explained(evidence, self._said, found)

    def _come_to_its_end(self, evidence: Evidence) -> Mapping[str, set[int]]:
        """Read what ranks have executed, as far as there is time, and say what that is."""
        lines = executed(evidence)
        wanted = _within_budget(lines)
        self._take()
        if not self._read.issuperset(wanted):
            self.close()
            self._reader = _Reader(wanted, gives_way=False)
            self._reader.wait()
            self._take()
        return lines

    def close(self) -> None:
        """Read no more."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _take(self) -> None:
        """Take over what the reader has found, if it is done."""
        if self._reader is None or not self._reader.is_done:
            return
        if (found := self._reader.found()) is not None:
            self._read, self._said = self._reader.files, found
        self.close()


class _Reader:
    """A process that reads some files, and may be ended at any time."""

    def __init__(self, files: Sequence[str], *, gives_way: bool) -> None:
        self.files = frozenset(files)
        context = multiprocessing.get_context("fork")
        self._answer, answer = context.Pipe(duplex=False)
        self._process = context.Process(
            target=_read, args=(files, answer, os.getpid(), gives_way), daemon=True
        )
        self._process.start()
        answer.close()

    @property
    def is_done(self) -> bool:
        """Its answer is there, or it has ended without one."""
        return self._answer.poll()

    def wait(self) -> None:
        """Until it is done, or has had its time."""
        deadline = time.monotonic() + _BUSY
        while time.monotonic() < deadline and not self._answer.poll(0.05):
            with contextlib.suppress(psutil.Error):
                if sum(psutil.Process(self._process.pid).cpu_times()[:2]) > _AT_THE_END:
                    break

    def found(self) -> list[Diagnostic] | None:
        """Its answer; None if it has none."""
        with contextlib.suppress(EOFError, OSError):
            answer: list[Diagnostic] = self._answer.recv()
            return answer
        return None

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.join()
        self._answer.close()


def _read(files: Sequence[str], answer: Connection, parent: int, gives_way: bool) -> None:
    from ddpdoctor.launch.processes import die_with

    for each in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError):  # what is the C library's own
            signal.signal(each, signal.SIG_DFL)  # those of the doctor go to its job
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    die_with(parent)
    resource.setrlimit(resource.RLIMIT_CPU, (_CORE, _CORE))
    if gives_way:
        os.nice(19)
    with contextlib.suppress(Exception):
        answer.send(read(files))


def _within_budget(lines: Mapping[str, set[int]]) -> list[str]:
    chosen, room = [], _BYTES
    for file in lines:
        with contextlib.suppress(OSError):
            room -= Path(file).stat().st_size
            if room < 0:
                break
            chosen.append(file)
    return chosen
