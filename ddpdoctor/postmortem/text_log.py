"""A plain log of a failed run: who failed first, as far as the log tells.

Ranks are told by the marks that torch and launchers put before lines, by torchrun's summary and by
the watchdogs' own words. Where no rank is told, none is named.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from ddpdoctor.catalog import Finding, RankPlace
from ddpdoctor.diagnose.aftermath import judge_log
from ddpdoctor.diagnose.detectors.known_messages import is_known
from ddpdoctor.evidence import (
    DAMAGED,
    MOST_RANKS,
    Collective,
    Evidence,
    ExceptionRecord,
    Fate,
    Group,
    Place,
    RankEvidence,
    Stuck,
    open_file,
)
from ddpdoctor.postmortem.lines import Binary, Line, Readable, lines
from ddpdoctor.postmortem.material import Material, NothingToRead
from ddpdoctor.postmortem.summary import Ending, Summary
from ddpdoctor.postmortem.tracebacks import Traceback, Tracebacks
from ddpdoctor.postmortem.watchdogs import Timeout, Watchdogs

_MOST_TRACEBACKS = 10_000
_MOST_LOOSE = 1000
_LAUNCHERS = frozenset({"ChildFailedError", "ProcessRaisedException", "ProcessExitedException"})
_TOLD_TO_END = "SignalException"
_LOOSE = "message"
"""Type of what is no exception, only a line."""
_SIGKILL, _SIGTERM = 9, 15
_C10D = "torch/distributed/distributed_c10d.py"
_GAVE_UP = re.compile(r"Timed out waiting (\d{1,15})ms for (?:recv|send)")
_WAITING = Place("/torch/distributed/distributed_c10d.py", 0, "wait")
_TELLS_LITTLE = (
    "a log tells what was printed, not where the silent ranks were; "
    "`ddpdoctor run -- COMMAND` watches every rank"
)


def read(stream: BinaryIO, name: str) -> Material:
    """What a log tells. Raises NothingToRead if it is empty or no text."""
    reading = _Reading()
    counted = _Counted(stream)
    try:
        reading.take_all(counted, None)
    except Binary:
        raise NothingToRead(f"{name} is no text, no dump and no run directory") from None
    if not counted.size:
        raise NothingToRead(f"{name} is empty")
    return reading.material()


def read_files(files: Iterable[tuple[Path, int | None]]) -> Material:
    """What several logs of one job tell, each of the rank that its name says. Raises OSError."""
    reading = _Reading()
    for path, rank in files:
        with open_file(path) as stream, contextlib.suppress(Binary):
            reading.take_all(stream, rank)
    return reading.material()


class _Reading:
    """Collects the pieces of a log."""

    def __init__(self) -> None:
        self._tracebacks, self._watchdogs, self._summary = Tracebacks(), Watchdogs(), Summary()
        self._loose: list[Line] = []

    def take_all(self, stream: Readable, rank: int | None) -> None:
        """Take in a stream; `rank` is whose it is, where its lines do not say. Raises Binary."""
        parts = (self._tracebacks, self._watchdogs, self._summary)
        for line in lines(stream, wanted=lambda: parts[0].is_open or parts[2].is_open):
            whose = line if rank is None or line.rank is not None else replace(line, rank=rank)
            try:
                if any(part.take(whose) for part in parts):
                    continue
            except DAMAGED:  # a damaged line costs itself alone
                continue
            if len(self._loose) < _MOST_LOOSE and is_known(line.text):
                self._loose.append(whose)
        self._tracebacks.end()

    def material(self) -> Material:
        """What it all comes to."""
        found = self._tracebacks.finished[:_MOST_TRACEBACKS]
        return _Puzzle(found, self._watchdogs, self._summary, self._loose).material()


class _Counted:
    """A stream that knows whether there was anything in it."""

    def __init__(self, stream: BinaryIO) -> None:
        self.size = 0
        self._stream = stream

    def read(self, size: int) -> bytes:
        block = self._stream.read(size)
        self.size += len(block)
        return block


class _Puzzle:
    """Puts the pieces of a log together, rank by rank."""

    def __init__(
        self,
        tracebacks: list[Traceback],
        watchdogs: Watchdogs,
        summary: Summary,
        loose: list[Line],
    ) -> None:
        self._timeouts = [each for each in watchdogs.timeouts() if each.rank < MOST_RANKS]
        self._told_to_end = any(each.type == _TOLD_TO_END for each in tracebacks)
        self._raised: dict[int, list[Traceback]] = {}
        nameless: list[Traceback] = []
        for each in tracebacks:
            if each.type in _LAUNCHERS or each.type == _TOLD_TO_END:
                with contextlib.suppress(*DAMAGED):
                    summary.take(Line(each.line, f"{each.type}: {each.message[0]}", None, False))
                continue
            if each.rank is not None and each.rank < MOST_RANKS:
                self._raised.setdefault(each.rank, []).append(each)
            else:
                nameless.append(each)
        summary.end()
        self._endings = {r: e for r, e in summary.endings.items() if r < MOST_RANKS}
        self._nameless = _distinct(self._owned(nameless))
        if not self._raised and not self._nameless and not self._timeouts:
            self._nameless = _distinct([_as_traceback(line) for line in loose])

    def material(self) -> Material:
        """The evidence, with a judge that knows which ranks are made up."""
        known = {*self._endings, *self._raised, *(each.rank for each in self._timeouts)}
        size = max(known, default=-1) + 1
        total = size + len(self._nameless)
        ranks = [RankEvidence(number, total) for number in range(total)]
        for number, tracebacks in self._raised.items():
            _raise(ranks[number], [each.record() for each in tracebacks], tracebacks[-1].in_group)
        for rank, each in zip(ranks[size:], self._nameless, strict=True):
            _raise(rank, [each.record()], each.in_group)
        for timeout in self._timeouts:
            _wait(ranks[timeout.rank], timeout, range(size))
        for ending in self._endings.values():
            self._end(ranks[ending.rank], ending)
        whole = Evidence(total, ranks)

        def judge() -> list[Finding]:
            made_up = range(size, total)
            return [_without(finding, made_up) for finding in judge_log(whole)]

        shown = Evidence(size, ranks[:size])
        return Material((("log", shown),), judge, tuple(self._not_seen(bool(ranks))))

    def _owned(self, nameless: list[Traceback]) -> list[Traceback]:
        """Give tracebacks without a rank to the ranks that failed without one, if that is clear."""
        failed = [r for r, e in self._endings.items() if e.exit_code > 0 and r not in self._raised]
        kinds = _distinct(nameless)
        if len(kinds) != 1 or not failed:
            return nameless
        for rank in failed:
            self._raised[rank] = [kinds[0]]
        return []

    def _end(self, rank: RankEvidence, ending: Ending) -> None:
        """Only what needs explaining is a fate: not what a launcher did to those that were left."""
        number = -ending.exit_code
        followed = number == _SIGTERM or (number == _SIGKILL and not ending.first)
        rank.pid = ending.pid or rank.pid
        if followed or rank.stuck is not None or rank.exceptions:
            return
        code = ending.exit_code if ending.exit_code >= 0 else None
        when = 0.0 if ending.first else 1e18
        rank.fate = Fate(rank.rank, rank.pid, code, None if code is not None else number, when)

    def _not_seen(self, anything: bool) -> list[str]:
        lines = [_TELLS_LITTLE]
        if self._told_to_end:
            lines.insert(0, "the launcher was ended by a signal: the log does not tell by whom")
        if self._nameless:
            lines.insert(0, "the log does not say which ranks raised what is shown without a rank")
        if not anything:
            lines.insert(0, "there is no traceback, watchdog or launcher's summary")
        return lines


def _distinct(tracebacks: list[Traceback]) -> list[Traceback]:
    """The first of each kind: ranks that do the same print the same."""
    kinds: dict[tuple[object, ...], Traceback] = {}
    for each in tracebacks:
        kinds.setdefault((each.type, tuple(each.frames), tuple(each.message[:1])), each)
    return list(kinds.values())[:20]


def _as_traceback(line: Line) -> Traceback:
    """A message that stands alone."""
    kind, colon, rest = line.text.partition(": ")
    named = colon and kind.isidentifier() and kind.endswith(("Error", "Exception"))
    return Traceback(
        line.rank,
        line.in_group,
        line.number,
        type=kind if named else _LOOSE,
        message=[rest if named else line.text.strip()],
    )


def _raise(rank: RankEvidence, errors: list[ExceptionRecord], in_group: bool) -> None:
    rank.pid = rank.pid or -1
    error = errors[-1]
    if in_group:
        rank.groups.setdefault("0", Group("0", (), "", 0.0, None))
    if match := _GAVE_UP.search(error.message):
        _stop(rank, error, int(match[1]) / 1000)
    else:
        rank.exceptions = [error]


def _stop(rank: RankEvidence, error: ExceptionRecord, seconds: float) -> None:
    """A timeout on gloo: the traceback tells which call it was, and nothing its number."""
    calls = [frame.function for frame in error.frames if frame.file.endswith(_C10D)]
    op = calls[0] if calls else "a collective"
    collective = Collective("0", 0, op, error.time, place=error.place)
    rank.groups["0"] = Group("0", (), "gloo", seconds, None)
    rank.stuck = Stuck(0.0, 1.0, error.frames, error.place, (collective,), awaited=collective)


def _wait(rank: RankEvidence, timeout: Timeout, everybody: range) -> None:
    rank.pid = rank.pid or -1
    shapes = ((timeout.numel,),) if timeout.numel is not None else ()
    collective = Collective(timeout.group, timeout.seq, timeout.op, 0.0, shapes=shapes)
    ranks = tuple(everybody) if timeout.group == "0" else ()
    rank.groups[timeout.group] = Group(timeout.group, ranks, "nccl", timeout.seconds, None)
    if ranks:  # without the members there is nothing to compare it with
        rank.collectives.append(collective)
    if rank.stuck is None or timeout.group == "0":
        issued = {timeout.group: timeout.enqueued}
        rank.stuck = Stuck(0.0, 1.0, (_WAITING,), None, (collective,), issued, awaited=collective)


def _without(finding: Finding, made_up: range) -> Finding:
    """Without the ranks that were made up for tracebacks of which the log names no rank."""

    def real(ranks: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(rank for rank in ranks if rank not in made_up)

    def place(each: RankPlace) -> RankPlace:
        return each.model_copy(
            update={"ranks": real(each.ranks), "waits_for": real(each.waits_for)}
        )

    places = (place(each) for each in finding.places)
    return finding.model_copy(
        update={
            "ranks": real(finding.ranks),
            "places": tuple(each for each in places if each.ranks or each.place),
            "evidence": tuple(line.removeprefix(f"{_LOOSE}: ") for line in finding.evidence),
        }
    )
