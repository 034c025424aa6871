"""What became of a job: the model that every format is rendered from.

The source lines that a report shows are read when it is made, so that a report that was saved as
JSON can be read back anywhere and shown in any other form.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from ddpdoctor import __version__
from ddpdoctor.catalog import Finding
from ddpdoctor.evidence import Collective, Evidence, Place, RankEvidence, signal_name
from ddpdoctor.report.model import Case, Group, Report

SCHEMA_VERSION: Final = 1
_GRAVITY: dict[str, int] = {"info": 0, "warning": 1, "error": 2, "never": 3}
_AROUND = 2
"""Lines that are shown before and after the one that a finding names."""
_LARGEST_SOURCE = 4 << 20
_LONGEST_LINE = 500
_MARKS = 40
_DID = {
    "save": "saved",
    "load": "loaded",
    "replace": "put in place",
    "unlink": "deleted",
    "rmtree": "removed",
}
_CALLS = 6000
"""Collectives that are kept of an attempt: the latest of each rank, as many of every one."""
_STACKS = 32
_EXCERPTS = 400


CallKey = tuple[str, int, str]
MarkKind = Literal["joining", "blocked", "exception", "warning", "paused", "file", "step", "end"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Mark(_Frozen):
    """Something in the life of a rank that is worth a mark on its lane."""

    kind: MarkKind
    at: float
    """Seconds since the first thing that is known of its attempt."""
    until: float
    text: str
    place: Place | None = None


class Call(_Frozen):
    """A collective that the Python code of a rank has issued; DDP's own reductions are not seen."""

    group: str
    seq: int
    op: str
    at: float
    """Seconds since the first thing that is known of its attempt."""
    place: Place | None = None
    alone: bool = False
    """A send or a recv, which is no collective of the group."""

    @property
    def key(self) -> CallKey:
        """What the calls of one collective have in common."""
        return self.group, self.seq, self.op


class RankLine(_Frozen):
    """One rank: how far it came and how it ended."""

    rank: int
    pid: int
    """0 if it wrote nothing."""
    host: str = ""
    """The name of its host; "" if it wrote none down."""
    fate: str
    """In words, on one line."""
    exit_code: int | None = None
    signal: int | None = None
    ended_at: float | None = None
    """On the clock of its host (CLOCK_MONOTONIC)."""
    was_ended: bool = False
    """By its launcher or the doctor, because of what became of others."""
    out_of_memory: bool = False
    """The kernel says that it has killed it, for want of memory."""
    steps: int = 0
    """Optimizer steps taken."""
    place: Place | None = None
    """Where it was seen last."""
    stack: tuple[Place, ...] = ()
    """The way to that place, outermost first."""
    doing: str = ""
    marks: tuple[Mark, ...] = ()
    calls: tuple[Call, ...] = ()
    """The latest collectives."""

    @classmethod
    def of(cls, rank: RankEvidence, zero: float = 0.0, calls: int = 100) -> RankLine:
        """What the evidence says; `zero` is when its attempt began."""
        place, stack, doing = _last_seen(rank)
        fate = rank.fate
        return cls(
            rank=rank.rank,
            pid=rank.pid,
            host=rank.host,
            fate=_fate(rank),
            exit_code=fate.exit_code if fate else None,
            signal=fate.signal if fate else None,
            ended_at=fate.time if fate else None,
            was_ended=fate.killed_by_us if fate else False,
            out_of_memory=fate.out_of_memory if fate else False,
            steps=rank.steps,
            place=place,
            stack=stack,
            doing=doing,
            marks=tuple(_marks(rank, zero))[:_MARKS],
            calls=tuple(_call(each, zero) for each in rank.collectives[-calls:]),
        )


class Attempt(_Frozen):
    """One set of ranks that belong together: a launcher that restarts a job makes a new one."""

    name: str
    world_size: int
    ranks: tuple[RankLine, ...]
    seconds: float = 0.0
    """From the first to the last thing that is known of it."""

    @classmethod
    def of(cls, name: str, evidence: Evidence) -> Attempt:
        """What the evidence says of each rank."""
        clocks: dict[str, list[float]] = {}  # each host has its own
        for rank in evidence.ranks:
            clocks.setdefault(rank.boot, []).extend(_times(rank))
        zero = {boot: min(times, default=0.0) for boot, times in clocks.items()}
        calls = max(4, min(120, _CALLS // max(1, len(evidence.ranks))))
        return cls(
            name=name,
            world_size=evidence.world_size,
            ranks=tuple(RankLine.of(rank, zero[rank.boot], calls) for rank in evidence.ranks),
            seconds=max((max(times) - min(times) for times in clocks.values() if times), default=0),
        )


class Excerpt(_Frozen):
    """Some lines of the user's source around the one that a finding names."""

    file: str
    line: int
    first: int
    """Number of the first of `lines`."""
    lines: tuple[str, ...]


class RunReport(_Frozen):
    """What became of a job, complete in itself."""

    schema_version: Literal[1] = SCHEMA_VERSION
    ddpdoctor: str = __version__
    kind: Literal["run", "diagnose", "attach"]
    """The command that made it."""
    command: tuple[str, ...]
    """The job's command under `run`; else what was looked at."""
    directory: str = ""
    """The working directory, which paths are shown relative to."""
    started: datetime
    seconds: float = 0.0
    exit_code: int | None = None
    signal: int | None = None
    """The signal that ended the job."""
    ended_by: Literal["job", "doctor", "signal"] | None = None
    """"signal": somebody asked the job to end; None: not known, or it goes on."""
    proven_after: float | None = None
    """Seconds from the last rank's blocking to the proof of the deadlock."""
    attempts: tuple[Attempt, ...] = ()
    """The last one is the one that the job ended with."""
    findings: tuple[Finding, ...] = ()
    not_seen: tuple[str, ...] = ()
    """What could not be watched or known, a line each."""
    run_dir: str = ""
    """Where the ranks' logs lie."""
    excerpts: tuple[Excerpt, ...] = ()

    @classmethod
    def of(
        cls,
        kind: Literal["run", "diagnose", "attach"],
        attempts: Sequence[Attempt],
        findings: Sequence[Finding],
        *,
        command: Sequence[str],
        started: datetime | None = None,
        seconds: float = 0.0,
        status: int | None = None,
        ended_by: Literal["job", "doctor", "signal"] | None = None,
        proven_after: float | None = None,
        not_seen: Sequence[str] = (),
        run_dir: Path | None = None,
    ) -> RunReport:
        """Read the source lines that the findings name. `status` is as Popen.returncode gives it.

        The gravest findings come first; among equals, the order is that of the diagnosis.
        """
        ordered = sorted(findings, key=lambda finding: -_GRAVITY[finding.severity])
        return cls(
            kind=kind,
            command=tuple(command),
            directory=_working_directory(),
            started=started or datetime.now(UTC),
            seconds=seconds,
            exit_code=status if status is not None and status >= 0 else None,
            signal=-status if status is not None and status < 0 else None,
            ended_by=ended_by,
            proven_after=proven_after,
            attempts=tuple(attempts),
            findings=tuple(ordered),
            not_seen=tuple(not_seen),
            run_dir=str(run_dir) if run_dir else "",
            excerpts=_excerpts(_worth_reading(ordered, attempts)),
        )

    @property
    def world_size(self) -> int:
        """Ranks of the last attempt."""
        return self.attempts[-1].world_size if self.attempts else 0

    @property
    def ranks(self) -> tuple[RankLine, ...]:
        """The ranks of the last attempt."""
        return self.attempts[-1].ranks if self.attempts else ()

    def excerpt_at(self, place: Place | None) -> Excerpt | None:
        """The source lines around a place, if they could be read."""
        if place is None:
            return None
        same = (e for e in self.excerpts if (e.file, e.line) == (place.file, place.line))
        return next(same, None)

    def told(self) -> Report:
        """What every format shows of it: the ranks of each launch, and a case for every rank."""
        from ddpdoctor.report.run import words

        groups = [self._group(attempt) for attempt in self.attempts]
        return Report(
            command=self.kind,
            verdict=words.summary(self),
            findings=self.findings,
            groups=groups,
            not_seen=self.not_seen,
            subject=" ".join(self.command),
            excerpts=self.excerpts,
            attempts=self.attempts,
            proven_after=self.proven_after,
            directory=self.directory,
            started=self.started,
            seconds=self.seconds,
            ddpdoctor=self.ddpdoctor,
        )

    def _group(self, attempt: Attempt) -> Group:
        from ddpdoctor.report.run import words

        rows = words.fates(attempt.ranks)
        group = Group(
            title=words.launch(self, attempt),
            columns=("ranks", "line", "function", "doing", "fate"),
            rows=[tuple(row) for row in rows],
            seconds=self.seconds,
        )
        if attempt is not self.attempts[-1]:
            return group
        name = f"ddpdoctor.{self.kind}"
        by_rank: dict[int, list[Finding]] = {line.rank: [] for line in attempt.ranks}
        alone: list[Finding] = []
        for finding in self.findings:
            # One failure for one cause, whichever number of ranks share it.
            by_rank.get(min(finding.ranks, default=-1), alone).append(finding)
        cases = [
            Case(
                f"rank {line.rank}",
                name,
                findings=tuple(by_rank[line.rank]),
                out=f"{line.fate}; {line.steps} optimizer steps",
            )
            for line in attempt.ranks
        ]
        cases.append(Case("job", name, findings=tuple(alone), out=words.summary(self)))
        return replace(group, cases=cases)

    def fails_on(self, severity: str) -> bool:
        """Whether a finding is as grave as this, or graver; none is as grave as "never"."""
        return any(_GRAVITY[f.severity] >= _GRAVITY[severity] for f in self.findings)

    def shown(self, place: Place) -> str:
        """A place as a path: relative to the working directory where it lies below it."""
        file = place.file
        if self.directory:
            file = file.removeprefix(f"{self.directory.rstrip('/')}/")
        return f"{file}:{place.line}"


def completed(lines: Sequence[RankLine]) -> dict[CallKey, float]:
    """When the last rank called each collective that no rank of its group has left out."""
    known: dict[CallKey, list[float]] = {}
    members: dict[str, set[int]] = {"0": {line.rank for line in lines}}
    for line in lines:
        for call in line.calls:
            if not call.alone:
                known.setdefault(call.key, []).append(call.at)
                members.setdefault(call.group, set()).add(line.rank)
    return {key: max(times) for key, times in known.items() if len(times) == len(members[key[0]])}


def _worth_reading(findings: Sequence[Finding], attempts: Sequence[Attempt]) -> Iterator[Place]:
    """The first place of each finding, then the others, then where the ranks stood and how."""
    yield from (finding.place for finding in findings if finding.place is not None)
    yield from (p.place for finding in findings for p in finding.places if p.place is not None)
    lines = attempts[-1].ranks if attempts else ()
    stacks = dict.fromkeys(line.stack or tuple(filter(None, [line.place])) for line in lines)
    yield from (place for stack in list(stacks)[:_STACKS] for place in reversed(stack))
    yield from (call.place for line in lines for call in line.calls if call.place is not None)


def _excerpts(places: Iterable[Place]) -> tuple[Excerpt, ...]:
    sources: dict[str, list[str]] = {}
    found: dict[tuple[str, int], Excerpt] = {}
    for place in places:
        if (place.file, place.line) in found:
            continue
        if place.file not in sources:
            sources[place.file] = _lines_of(place.file)
        if (read := _excerpt(place, sources[place.file])) is not None:
            found[place.file, place.line] = read
            if len(found) == _EXCERPTS:
                break
    return tuple(found.values())


def _lines_of(file: str) -> list[str]:
    """The source; nothing where it cannot be read as text."""
    path = Path(file)
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_SOURCE:
            return []
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, ValueError):
        return []


def _excerpt(place: Place, lines: Sequence[str]) -> Excerpt | None:
    if not 0 < place.line <= len(lines) or not lines[place.line - 1].strip():
        return None
    first = max(1, place.line - _AROUND)
    last = min(len(lines), place.line + _AROUND)
    return Excerpt(
        file=place.file,
        line=place.line,
        first=first,
        lines=tuple(line[:_LONGEST_LINE] for line in lines[first - 1 : last]),
    )


def _working_directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - Path.cwd() would do the same
    except OSError:  # somebody has removed it
        return ""


def _fate(rank: RankEvidence) -> str:
    fate = rank.fate
    blocked = _blocked_in(rank)
    if rank.pid == 0 and fate is None:
        return "wrote nothing"
    if fate is None:
        return f"blocked in {blocked}" if blocked else "no end is known"
    if fate.killed_by_us:
        return f"blocked in {blocked}, then ended" if blocked else "was ended"
    if fate.signal is not None:
        return f"ended by {signal_name(fate.signal)}"
    if rank.exceptions:
        return f"raised {rank.exceptions[-1].type}"
    if fate.exit_code is None:
        return "ended; its exit code is not known"
    return "ended well" if fate.exit_code == 0 else f"exit code {fate.exit_code}"


def _blocked_in(rank: RankEvidence) -> str:
    if rank.stuck is None or not rank.stuck.waiting:
        return ""
    first = rank.stuck.waiting[0]
    return f"{first.op} #{first.seq}" if first.seq else first.op


def _last_seen(rank: RankEvidence) -> tuple[Place | None, tuple[Place, ...], str]:
    if (stuck := rank.stuck) is not None:
        end = max((n for n, each in enumerate(stuck.stack, 1) if each == stuck.place), default=0)
        return stuck.place, stuck.stack[:end], _blocked_in(rank)
    if rank.exceptions:
        error = rank.exceptions[-1]
        return error.place, error.user, f"raised {error.type}"
    for collective in reversed(rank.collectives[-100:]):
        if collective.place is not None:
            return collective.place, collective.way, f"{collective.op} #{collective.seq}"
    return None, (), ""


def _times(rank: RankEvidence) -> Iterator[float]:
    """Moments that are known of a rank; the first and the last of everything are among them."""
    known = [rank.joining, rank.exiting, rank.fate.time if rank.fate else None, rank.last_event]
    yield from (time for time in known if time)
    yield from (collective.begun for collective in rank.collectives[:1])
    yield from (file.begun for file in rank.files[:1])


def _call(made: Collective, zero: float) -> Call:
    return Call(
        group=made.group,
        seq=made.seq,
        op=made.op,
        at=max(0.0, made.begun - zero),
        place=made.place,
        alone=made.op in ("send", "recv"),
    )


def _marks(rank: RankEvidence, zero: float) -> Iterator[Mark]:
    def mark(
        kind: MarkKind, at: float, until: float, text: str, place: Place | None = None
    ) -> Mark:
        at, until = max(0.0, at - zero), max(0.0, until - zero)
        return Mark(kind=kind, at=at, until=until, text=text, place=place)

    if rank.joining:
        began = [group.ranks for group in rank.groups.values()]
        text = "joined the process group" if began else "began to join, and never did"
        yield mark("joining", rank.joining, rank.joining, text, rank.joining_place)
    if (stuck := rank.stuck) is not None:
        until = max(stuck.seen, rank.fate.time if rank.fate else 0.0)
        text = f"blocked in {_blocked_in(rank) or 'a call'}"
        yield mark("blocked", stuck.since, until, text, stuck.place)
    if rank.fate is not None:
        text = "ended from outside" if rank.fate.killed_by_us else _fate(rank)
        yield mark("end", rank.fate.time, rank.fate.time, text)
    for error in rank.exceptions:
        yield mark("exception", error.time, error.time, f"raised {error.type}", error.place)
    for warned in rank.warnings[: _MARKS // 4]:
        text = f"{warned.category}: {warned.message}"
        yield mark("warning", warned.time, warned.time, text, warned.place)
    for pause in rank.pauses[-8:]:
        waited = f"waited in {pause.waiting[0].op} #{pause.waiting[0].seq}" if pause.waiting else ""
        text = waited or "issued no collective"
        yield mark("paused", pause.since, pause.seen, text, pause.place)
    steps = {sample.step: sample.time for sample in rank.samples if sample.time}
    for number in sorted(steps)[-_MARKS // 4 :]:
        yield mark("step", steps[number], steps[number], f"optimizer step {number}")
    for file in rank.files:
        # A folder that a library made for its cache is nothing that the job did.
        if file.action != "mkdir":
            text = f"{_DID.get(file.action, file.action)} {Path(file.path).name}"
            yield mark("file", file.begun, file.ended or file.begun, text, file.place)
