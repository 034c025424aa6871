"""The lives of ranks, as a report tells and draws them: what evidence comes to, rank by rank."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ddpdoctor.evidence import Place
from ddpdoctor.report.excerpts import Kept
from ddpdoctor.report.words import one_line

if TYPE_CHECKING:  # a report that is about no job needs none of it
    from ddpdoctor.evidence import Collective, Evidence, Fate, RankEvidence, Stuck

_MARKS = 40
_DID = {
    "save": ("saved", "save"),
    "load": ("loaded", "load"),
    "replace": ("put in place", "put in place"),
    "unlink": ("deleted", "delete"),
    "rmtree": ("removed", "remove"),
}
"""And what it was that failed."""
_CALLS = 6000
"""Collectives that are kept of an attempt: the latest of each rank, as many of every one."""
_STEPS = 200
_PARAMETERS = 50
_PARTIES = 3
"""Of ranks whose metrics differ, so many are told."""
_LOSSES = 3
"""Lines that go backward from a loss: those with the most steps."""

CallKey = tuple[str, int, str]
MarkKind = Literal["joining", "blocked", "exception", "warning", "paused", "file", "step", "end"]


class Mark(Kept):
    """Something in the life of a rank that is worth a mark on its lane."""

    kind: MarkKind
    at: float
    """Seconds since the first thing that is known of its attempt."""
    until: float
    text: str
    place: Place | None = None


class Call(Kept):
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


class RankLine(Kept):
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


class Step(Kept):
    """An optimizer step that was looked at: when the ranks came to it."""

    step: int
    ranks: int
    """How many did."""
    first: float
    """Seconds since the first thing that is known of its attempt."""
    last: float
    slowest: int
    """The rank that came last."""


class Parameter(Kept):
    """One that a wrapper should keep the same on all ranks, and that is not."""

    name: str
    versions: tuple[int, ...]
    """How many there are of it, at each of the steps."""


class Losses(Kept):
    """What ranks went backward from, at one line of their source."""

    place: Place | None
    steps: tuple[int, ...]
    """The latest that were looked at, and of each over the ranks:"""
    mean: tuple[float, ...]
    least: tuple[float, ...]
    most: tuple[float, ...]
    not_finite: tuple[int, ...] = ()
    """Ranks on which it was once no number, or infinite."""
    not_finite_since: int = 0
    """The first step at which it was so on any of them."""


class Metric(Kept):
    """What a learning rate follows (ReduceLROnPlateau), on ranks that saw the same."""

    ranks: tuple[int, ...]
    values: tuple[float, ...]


class Attempt(Kept):
    """One set of ranks that belong together: a launcher that restarts a job makes a new one."""

    name: str
    world_size: int
    ranks: tuple[RankLine, ...]
    seconds: float = 0.0
    """From the first to the last thing that is known of it."""
    versions: str = ""
    """As in "torch 2.13.0, Python 3.11.7"; several of each where its ranks differ."""
    steps: tuple[Step, ...] = ()
    """The latest that were looked at."""
    parameter_steps: tuple[int, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    """Of those that are apart, the first."""
    parameters_apart: int = 0
    metrics: tuple[Metric, ...] = ()
    losses: tuple[Losses, ...] = ()

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
            versions=_versions(evidence),
            steps=tuple(_steps(evidence, zero))[-_STEPS:],
            **_apart(evidence),
            metrics=tuple(_metrics(evidence)),
            losses=tuple(_losses(evidence)),
        )


def _versions(evidence: Evidence) -> str:
    known = {
        "torch": {rank.torch for rank in evidence.ranks if rank.torch},
        "Python": {rank.python for rank in evidence.ranks if rank.python},
    }
    told = (f"{name} {' and '.join(sorted(which))}" for name, which in known.items() if which)
    return one_line(", ".join(told))


def _steps(evidence: Evidence, zero: dict[str, float]) -> Iterator[Step]:
    came: dict[int, list[tuple[float, int]]] = {}
    for rank in evidence.ranks:
        for number, time in _reached(rank).items():
            came.setdefault(number, []).append((max(0.0, time - zero[rank.boot]), rank.rank))
    for number, times in sorted(came.items()):
        (first, _), (last, slowest) = min(times), max(times)
        yield Step(step=number, ranks=len(times), first=first, last=last, slowest=slowest)


def _reached(rank: RankEvidence) -> dict[int, float]:
    """When it came to those steps of its first optimizer that were looked at: each counts its own.

    The last look, at a rank that leaves, is at no step.
    """
    first = min((each.optimizer for each in rank.samples), default=0)
    taken = [used.steps for (_, optimizer), used in rank.training.items() if optimizer == first]
    last = max(taken, default=math.inf) if rank.leaving or rank.exiting else math.inf
    samples = (each for each in rank.samples if each.optimizer == first and each.step <= last)
    return {each.step: each.time for each in samples if each.time}


def _apart(evidence: Evidence) -> dict[str, Any]:
    """The parameters of wrappers whose digests differ between ranks, the first to part first."""
    digests: dict[tuple[tuple[int, ...], int, int, str], dict[int, set[str]]] = {}
    for rank in evidence.ranks:
        for sample in rank.samples:
            number = sample.wrapper if sample.wrapper is not None else len(rank.wrappers)
            # Of ranks that share none, as two rows of a grid, nothing has to be the same.
            sharing = rank.wrappers[number].ranks[:1] if number < len(rank.wrappers) else ()
            for name, digest in sample.parameters.items() if sample.wrapper is not None else ():
                key = sharing, number, sample.optimizer, name
                digests.setdefault(key, {}).setdefault(sample.step, set()).add(digest)
    apart = {n: by_step for n, by_step in digests.items() if max(map(len, by_step.values())) > 1}
    steps = sorted({step for by_step in apart.values() for step in by_step})[-_STEPS:]
    one_model = len({wrapper for _, wrapper, *_ in digests}) == 1
    found = [
        Parameter(
            name=name if one_model else f"{name} (model {wrapper})",
            versions=tuple(len(by_step.get(step, ())) for step in steps),
        )
        for (_, wrapper, _, name), by_step in apart.items()
    ]
    found.sort(key=lambda each: [n <= 1 for n in each.versions])
    first: dict[str, Parameter] = {}  # several optimizers of a model look at the same ones
    for each in found:
        first.setdefault(each.name, each)
    told = tuple(first.values())[:_PARAMETERS]
    return {"parameter_steps": steps, "parameters": told, "parameters_apart": len(first)}


def _metrics(evidence: Evidence) -> Iterator[Metric]:
    alike: dict[tuple[float, ...], list[int]] = {}
    for rank in evidence.ranks:
        values = tuple(each.metric for each in rank.plateaus if math.isfinite(each.metric))
        if values:
            alike.setdefault(values[-_STEPS:], []).append(rank.rank)
    for values, ranks in list(alike.items())[:_PARTIES]:
        yield Metric(ranks=tuple(ranks), values=values)


def _losses(evidence: Evidence) -> Iterator[Losses]:
    from ddpdoctor.evidence.events.losses import Loss

    found: dict[Place | None, dict[int, dict[int, float | None]]] = {}
    for rank in evidence.ranks:
        for each in rank.of(Loss):
            found.setdefault(each.place, {}).setdefault(each.step, {})[rank.rank] = each.value
    for place, by_step in sorted(found.items(), key=lambda each: -len(each[1]))[:_LOSSES]:
        finite = {
            step: told
            for step, values in sorted(by_step.items())[-_STEPS:]
            if (told := [value for value in values.values() if value is not None])
        }
        odd = [
            (step, rank)
            for step, values in by_step.items()
            for rank, value in values.items()
            if value is None
        ]
        yield Losses(
            place=place,
            steps=tuple(finite),
            mean=tuple(math.fsum(value / len(told) for value in told) for told in finite.values()),
            least=tuple(map(min, finite.values())),
            most=tuple(map(max, finite.values())),
            not_finite=tuple(sorted({rank for _, rank in odd})),
            not_finite_since=min(odd, default=(0, 0))[0],
        )


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


def _fate(rank: RankEvidence) -> str:
    fate = rank.fate
    blocked = _blocked_in(rank)
    if rank.pid == 0 and fate is None:
        return "wrote nothing"
    if fate is None:
        return f"blocked in {blocked}" if blocked else "no end is known"
    if fate.killed_by_us:
        did = [f"blocked in {blocked}"] if blocked else []
        did += [f"raised {error.type}" for error in rank.exceptions[-1:]]
        return f"{', '.join(did)}, then ended" if did else "was ended"
    if rank.exceptions and fate.signal is None:
        return f"raised {rank.exceptions[-1].type}"
    return _end(fate)


def _end(fate: Fate) -> str:
    from ddpdoctor.evidence import signal_name

    if fate.signal is not None:
        return f"ended by {signal_name(fate.signal)}"
    if fate.exit_code is None:
        return "ended; its exit code is not known"
    return "ended well" if fate.exit_code == 0 else f"ended with exit code {fate.exit_code}"


def _standstill(rank: RankEvidence) -> Stuck | None:
    """The call that it never came out of, if there is one.

    It did where it then ended well, or had raised before.
    """
    stuck, fate = rank.stuck, rank.fate
    if stuck is None or (fate is not None and fate.exit_code == 0):
        return None
    return None if any(error.time <= stuck.since for error in rank.exceptions) else stuck


def _blocked_in(rank: RankEvidence) -> str:
    stuck = _standstill(rank)
    if stuck is None or not stuck.waiting:
        return ""
    first = stuck.waiting[0]
    return f"{first.op} #{first.seq}" if first.seq else first.op


def _last_seen(rank: RankEvidence) -> tuple[Place | None, tuple[Place, ...], str]:
    if (stuck := _standstill(rank)) is not None:
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
    yield from (error.time for error in rank.exceptions[:1])


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
    if (stuck := _standstill(rank)) is not None:
        ends = [each.time for each in (*rank.exceptions, rank.fate) if each]
        until = min(ends, default=stuck.seen)
        # Two looks may have seen it in the same line of two steps: it waits in nothing that it had
        # not issued. What its own line issued it waits in since then, not since the first look.
        since = stuck.since
        for call in stuck.waiting[:1]:
            since = call.begun if call.place == stuck.place else max(since, call.begun)
        text = f"blocked in {_blocked_in(rank) or 'a call'}"
        yield mark("blocked", min(since, until), until, text, stuck.place)
    if rank.fate is not None:
        text = "was ended" if rank.fate.killed_by_us else _end(rank.fate)
        yield mark("end", rank.fate.time, rank.fate.time, text)
    for error in rank.exceptions:
        yield mark("exception", error.time, error.time, f"raised {error.type}", error.place)
    for warned in rank.warnings[: _MARKS // 4]:
        text = f"warned: {warned.category}: {warned.message}"
        yield mark("warning", warned.time, warned.time, text, warned.place)
    for pause in rank.pauses[-8:]:
        waited = f"waited in {pause.waiting[0].op} #{pause.waiting[0].seq}" if pause.waiting else ""
        text = waited or "issued no collective"
        yield mark("paused", pause.since, pause.seen, text, pause.place)
    for number, time in sorted(_reached(rank).items())[-_MARKS // 4 :]:
        yield mark("step", time, time, f"optimizer step {number}")
    for file in rank.files:
        # A folder that a library made for its cache is nothing that the job did.
        if file.action != "mkdir":
            did, tried = _DID.get(file.action, (file.action, file.action))
            text = f"{f'failed to {tried}' if file.error else did} {Path(file.path).name}"
            yield mark("file", file.begun, file.ended or file.begun, text, file.place)
