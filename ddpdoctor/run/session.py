"""One run from start to end: start the job, follow its ranks, end it if it is dead, conclude."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ddpdoctor.catalog import Finding
from ddpdoctor.evidence import LAST_WORDS, SUMMARY
from ddpdoctor.run import limits
from ddpdoctor.run.audience import Audience, Watcher
from ddpdoctor.run.job import RunningCommand, Signals, exit_code, under_watch
from ddpdoctor.run.reading import Reading
from ddpdoctor.run.worlds import Worlds

_POLL = 0.2
_POLL_CLOSELY = 0.03
_OF_ONE = ("--cpu", "--num_processes", "--num-processes")
"""Who says one of these to accelerate knows of --num_processes."""
_REACTION = 6.0
"""Seconds after a signal in which it shows whether ranks that outlive their launcher react.

And whether their launcher does that has outlived them.
"""


@dataclass(frozen=True)
class RunOptions:
    """What `ddpdoctor run` was asked for."""

    command: Sequence[str]
    run_dir: Path | None
    """Where ranks write; None if nothing can be written: the job is then run unwatched."""
    shared: Path | None = None
    """The folder that the user has named for it, which other hosts may see."""
    keep_going: bool = False
    """Leave a job that is proven dead as it is."""
    alone: bool = False
    """Do not look for the doctors of other hosts."""
    digest_every: int = 0
    """Compare the ranks' parameters every so many optimizer steps; 0 is at 1, 2, 4, 8, …"""
    output: Path | None = None
    """Where the job prints to; None is where it would without the doctor."""
    verbose: bool = False
    """Let the launcher print what it has to say of ranks that failed, or as the doctor ends it."""


@dataclass
class Session:
    """What came of one run."""

    options: RunOptions
    started: datetime
    worlds: Worlds
    status: int = 0
    """As waitpid gives it: -n if signal n ended the command."""
    ended_by_doctor: bool = False
    ended_for: int = 0
    """The signal that the doctor gave effect to, as the job could not hear it."""
    interrupted: bool = False
    """Somebody asked the job to end, by a signal that came through the doctor."""
    seconds: float = 0.0
    proven_after: float | None = None
    """Seconds from the last rank's blocking to the proof of the deadlock."""
    findings: list[Finding] = field(default_factory=list)
    limit: Finding | None = None
    """One that is too low for a job like this."""
    not_seen: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    """The files that ranks executed and that there was no time to read."""
    fault: str = ""
    """What went wrong with the doctor itself: nothing is watched from then on."""

    @property
    def last_words(self) -> Path | None:
        """Where it lies what the launcher said as the doctor ended it, if it said anything."""
        return self._said(LAST_WORDS)

    @property
    def summary(self) -> Path | None:
        """Where it lies what the launcher said of ranks that failed, if it was put aside."""
        return self._said(SUMMARY)

    @property
    def exit_code(self) -> int:
        """1 if the doctor ended the job, whatever its launcher made of it; else the job's own."""
        return 1 if self.ended_by_doctor else exit_code(-self.ended_for or self.status)

    def _said(self, name: str) -> Path | None:
        if self.options.run_dir is None:
            return None
        file = self.options.run_dir / name
        return file if file.is_file() and file.stat().st_size else None


def run(options: RunOptions, signals: Signals, audience: Audience) -> Session:
    """Run the command to its end. Raises CannotStart."""
    worlds = Worlds(options.run_dir, alone=options.alone, shared=options.shared)
    session = Session(options, datetime.now(UTC), worlds, limit=limits.too_few())
    clock = time.monotonic()
    with _taking_the_summary(options), contextlib.closing(Reading()) as reading:
        job = RunningCommand(options.command, _environment(options), options.output)
        signals.go_to(job)
        _follow(job, signals, session, audience, reading)
    session.seconds = time.monotonic() - clock
    return session


@contextlib.contextmanager
def _taking_the_summary(options: RunOptions) -> Iterator[None]:
    """While the doctor lives, the launcher leaves to it what there is to say of failed ranks."""
    if options.run_dir is None or options.output is not None or options.verbose:
        yield
        return
    file = options.run_dir / SUMMARY
    with contextlib.ExitStack() as kept:
        with contextlib.suppress(OSError):
            file.touch()  # held to be read: what is open to be written keeps a disk from its user
            kept.callback(_remove_if_empty, file)
            fcntl.flock(kept.enter_context(file.open("rb")), fcntl.LOCK_SH)
        yield


def _remove_if_empty(file: Path) -> None:
    with contextlib.suppress(OSError):
        if not file.stat().st_size:
            file.unlink()


def _environment(options: RunOptions) -> dict[str, str]:
    if options.run_dir is None:
        return {}
    digests = {"DDPDOCTOR_DIGEST_EVERY": str(options.digest_every)} if options.digest_every else {}
    return under_watch(options.run_dir) | digests


def _follow(
    job: RunningCommand, signals: Signals, session: Session, audience: Audience, reading: Reading
) -> None:
    worlds, options = session.worlds, session.options
    watcher = Watcher(audience, session.limit)
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
                worlds.asked_to_end()
                session.findings = worlds.findings()
            if session.fault or status is not None:
                continue
            worlds.poll(killed_by_us=bool(signals.asked_to_end))
            if worlds.deadlocked and not options.keep_going and not session.interrupted:
                session.findings = worlds.findings()
                session.proven_after = worlds.deadlocked[0].proven_after
                session.ended_by_doctor = True
                for world in worlds.deadlocked:
                    world.end_elsewhere()
                if options.run_dir is not None and not options.verbose:
                    with contextlib.suppress(OSError):
                        (options.run_dir / LAST_WORDS).touch()
                job.end(worlds.living)
            elif not session.interrupted:
                watcher.look(worlds)
            elif worlds.are_deaf_since(signals.asked_at):
                session.ended_for = signals.asked_to_end
                job.end(worlds.living)
            elif time.monotonic() > signals.asked_at + _REACTION and job.kill_at_rest(
                worlds.idle_agents
            ):
                session.ended_for = signals.asked_to_end
            if worlds.latest is not None:
                audience.look(worlds.latest, watcher.stall)
                reading.go_on(worlds.latest.evidence)
    session.status = status
    signals.conclude()
    with _sparing_the_job(session):
        if session.interrupted:
            _end_the_deaf(job, signals, session)
        ended_by_us = session.ended_by_doctor or session.interrupted
        worlds.settle(exit_code(status), killed_by_us=ended_by_us)
        if not ended_by_us:
            session.findings = worlds.findings()
        ended_badly = exit_code(status) != 0 and not session.ended_by_doctor
        if session.limit is not None and (session.interrupted or ended_badly):
            session.findings.append(session.limit)
        watcher.conclude(session.findings, was_ended=ended_by_us)
        for world in worlds.all:
            world.part(session.findings)
        session.not_seen = _not_seen(session, options.run_dir)
        if worlds.latest is not None:
            evidence = worlds.latest.evidence
            session.findings = reading.explain(evidence, session.findings)
            if exit_code(status) == 0 and not _has_error(session):
                only_read, session.unread = reading.conclude(evidence, session.findings)
                session.findings += only_read
    if session.fault:
        session.not_seen.insert(0, f"a fault of ours ended the watching: {session.fault}")


def _end_the_deaf(job: RunningCommand, signals: Signals, session: Session) -> None:
    """End the ranks that were left behind when the job was asked to end, and cannot hear of it."""
    worlds = session.worlds
    while worlds.living and time.monotonic() < signals.asked_at + _REACTION:
        if worlds.are_deaf_since(signals.asked_at):
            job.end(worlds.living)
        time.sleep(_POLL)
        worlds.note_deaths()
        worlds.poll(killed_by_us=True)


@contextlib.contextmanager
def _sparing_the_job(session: Session) -> Iterator[None]:
    """A fault of ours ends the watching, and neither the job nor its exit code knows of it."""
    try:
        yield
    except Exception as error:
        session.fault = session.fault or f"{type(error).__name__}: {error}"


def _has_error(session: Session) -> bool:
    return any(each.severity == "error" for each in session.findings)


def _not_seen(session: Session, run_dir: Path | None) -> list[str]:
    worlds = session.worlds
    if run_dir is None or not run_dir.is_dir():
        return ["nothing could be written anywhere, so the job was not watched"]
    if worlds.importing and not worlds.had_torch and not session.interrupted:
        return ["importing torch did not come to its end: `ddpdoctor env` says what is in its way"]
    if not worlds.all and not worlds.reached:
        return [
            "no process that uses torch was seen: it was not one of Python's, or was started by "
            "python -I, in a container, on another host, or under DDPDOCTOR_DISABLE=1"
        ]
    lines = [f"the ranks of {name} could write nothing: is the disk full?" for name in worlds.mute]
    lines += dict.fromkeys(line for world in worlds.all for line in world.not_seen())
    if all(world.size == 1 for world in worlds.all):
        lines += _alone(session.options.command)
    if living := [pid for pid in worlds.living if Path(f"/proc/{pid}").exists()]:
        pids = ", ".join(map(str, living))
        lines.append(f"the command has ended, and {len(living)} of its ranks go on (pid {pids})")
    return lines


def _alone(command: Sequence[str]) -> list[str]:
    """What to do about a single process of accelerate's."""
    words = [Path(word).name for word in command]
    if words[:2] != ["accelerate", "launch"] and "accelerate.commands.launch" not in words:
        return []
    has_asked = any(word.partition("=")[0] in _OF_ONE for word in command)
    cure = (
        "it starts no more on a CPU, whatever --num_processes says: `torchrun "
        "--nproc-per-node=N` does"
        if has_asked
        else "give it --num_processes=N, or run `accelerate config`"
    )
    return [f"accelerate launch has started one process, which trained alone: {cure}"]
