"""One run from start to end: start the job, follow its ranks, end it if it is dead, conclude."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ddpdoctor.catalog import Finding
from ddpdoctor.run.job import Job, Signals, exit_code, under_watch
from ddpdoctor.run.worlds import World, Worlds

_POLL = 0.2
_POLL_CLOSELY = 0.03
_DIAGNOSE_EVERY = 2.0
"""Seconds between two looks for what is wrong with a job that goes on."""

_SHARE = 0.002
"""Of a core, that may be spent on it: the cores are the job's."""

OnFinding = Callable[[Finding], None]
OnLook = Callable[[World], None]


@dataclass(frozen=True)
class RunOptions:
    """What `ddpdoctor run` was asked for."""

    command: Sequence[str]
    run_dir: Path | None
    """Where ranks write; None if nothing can be written: the job is then run unwatched."""
    keep_going: bool = False
    """Leave a job that is proven dead as it is."""
    digest_every: int = 0
    """Compare the ranks' parameters every so many optimizer steps; 0 is at 1, 2, 4, 8, …"""


@dataclass
class Session:
    """What came of one run."""

    options: RunOptions
    started: datetime
    worlds: Worlds
    status: int = 0
    """As waitpid gives it: -n if signal n ended the command."""
    ended_by_doctor: bool = False
    interrupted: bool = False
    """Somebody asked the job to end, by a signal that came through the doctor."""
    seconds: float = 0.0
    proven_after: float | None = None
    """Seconds from the last rank's blocking to the proof of the deadlock."""
    findings: list[Finding] = field(default_factory=list)
    not_seen: list[str] = field(default_factory=list)
    fault: str = ""
    """What went wrong with the doctor itself: nothing is watched from then on."""


def run(options: RunOptions, on_finding: OnFinding, on_look: OnLook) -> Session:
    """Run the command to its end; `on_finding` is told what is found while it goes on.

    Raises CannotStart.
    """
    session = Session(options, datetime.now(UTC), Worlds(options.run_dir))
    clock = time.monotonic()
    with Signals() as signals:
        job = Job(options.command, _environment(options))
        signals.go_to(job)
        _follow(job, signals, session, on_finding, on_look)
    session.seconds = time.monotonic() - clock
    return session


def _environment(options: RunOptions) -> dict[str, str]:
    if options.run_dir is None:
        return {}
    digests = {"DDPDOCTOR_DIGEST_EVERY": str(options.digest_every)} if options.digest_every else {}
    return under_watch(options.run_dir) | digests


def _follow(
    job: Job, signals: Signals, session: Session, on_finding: OnFinding, on_look: OnLook
) -> None:
    worlds, options = session.worlds, session.options
    watcher = _Watcher(on_finding)
    status = None
    while status is None:
        signals.wait(_POLL_CLOSELY if worlds.is_eventful else _POLL)
        status = job.status
        with _sparing_the_job(session):
            if not session.fault:
                worlds.note_deaths()
        # Only now: a signal that came before an ending may be its cause.
        signals.wait(0)
        with _sparing_the_job(session):
            if signals.asked_to_end and not session.interrupted:
                # As they were: what ranks write from now on comes of the interruption.
                session.interrupted = True
                session.findings = worlds.findings()
            if session.fault or status is not None:
                continue
            worlds.poll(killed_by_us=signals.asked_to_end)
            if worlds.deadlocked and not options.keep_going and not session.interrupted:
                session.findings = worlds.findings()
                session.proven_after = worlds.deadlocked[0].proven_after
                session.ended_by_doctor = True
                job.end(worlds.living)
            elif not session.interrupted:
                watcher.look(worlds)
            if worlds.latest is not None:
                on_look(worlds.latest)
    session.status = status
    with _sparing_the_job(session):
        ended_by_us = session.ended_by_doctor or session.interrupted
        worlds.settle(exit_code(status), killed_by_us=ended_by_us)
        if not ended_by_us:
            session.findings = worlds.findings()
        session.not_seen = _not_seen(session, options.run_dir)
    if session.fault:
        session.not_seen.insert(0, f"a fault of ours ended the watching: {session.fault}")


@contextlib.contextmanager
def _sparing_the_job(session: Session) -> Iterator[None]:
    """A fault of ours ends the watching, and neither the job nor its exit code knows of it."""
    try:
        yield
    except Exception as error:
        session.fault = session.fault or f"{type(error).__name__}: {error}"


def _identity(finding: Finding) -> tuple[str, str]:
    return finding.code, str(finding.place)


def _not_seen(session: Session, run_dir: Path | None) -> list[str]:
    worlds = session.worlds
    if run_dir is None or not run_dir.is_dir():
        return ["nothing could be written anywhere, so the job was not watched"]
    if not worlds.all and not worlds.reached:
        return [
            "no process that uses torch was seen: it was not one of Python's, or was started by "
            "python -I, in a container, on another host, or under DDPDOCTOR_DISABLE=1"
        ]
    lines = [f"the ranks of {name} could write nothing: is the disk full?" for name in worlds.mute]
    lines += [line for world in worlds.all for line in world.not_seen()]
    if living := worlds.living:
        pids = ", ".join(map(str, living))
        lines.append(f"the command has ended, and {len(living)} of its ranks go on (pid {pids})")
    return lines


class _Watcher:
    """Looks for what is wrong while the job goes on; tells what two looks in a row have found."""

    def __init__(self, on_finding: OnFinding) -> None:
        self._on_finding = on_finding
        self._next = 0.0
        self._seen: set[tuple[str, str]] = set()
        self._told: set[tuple[str, str]] = set()

    def look(self, worlds: Worlds) -> None:
        """Look again, if it is time to."""
        if worlds.all and (began := time.monotonic()) > self._next:
            found = {_identity(each): each for each in worlds.findings()}
            for key, finding in found.items():
                if key in self._seen and key not in self._told:
                    self._told.add(key)
                    self._on_finding(finding)
            self._seen = set(found)
            took = time.monotonic() - began
            self._next = time.monotonic() + max(_DIAGNOSE_EVERY, took / _SHARE)
