"""A trace that ui.perfetto.dev opens: Chrome's JSON trace event format.

Its schema is the "Trace Event Format" of Chromium's catapult project; what Perfetto makes of it was
read in its importer, and tried with its trace processor.

Each rank is a process, with threads for what its Python code called, what became of it, and its
files. The calls of one collective are bound by a flow, from the rank that came first to
the one that came last, and each lasts until that one came. Times are microseconds since the first
thing that is known of the launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ddpdoctor.catalog import Finding
from ddpdoctor.evidence import Place
from ddpdoctor.report.as_json import document
from ddpdoctor.report.lives import Attempt, Call, CallKey, Mark, completed
from ddpdoctor.report.model import Report
from ddpdoctor.report.output import Page
from ddpdoctor.report.words import one_line

_CALLS, _LIFE, _FILES = 1, 2, 3
_THREADS = {_CALLS: "collectives", _LIFE: "life", _FILES: "files"}
_SPANS = {"blocked": _LIFE, "paused": _LIFE, "file": _FILES}
_POINT = 1000
"""Nanoseconds that are drawn of what has no length."""
_PER_ATTEMPT = 1_000_000
"""Process numbers of one launch lie below those of the next: of the first, they are the ranks."""
_DEEP = 32
"""So many findings stand below each other."""

Event = dict[str, Any]
"""With its times in nanoseconds, to the last of which slices must fit into each other."""


def render(report: Report, page: Page | None = None) -> str:
    """All launches, one below the other; above them the findings."""
    events: list[Event] = list(_findings(report))
    for number, attempt in enumerate(report.attempts):
        name = f"{one_line(attempt.name)}, " if len(report.attempts) > 1 else ""
        events += _attempt(attempt, number * _PER_ATTEMPT, name)
    trace = {
        "otherData": {
            "command": f"ddpdoctor {report.command}",
            "verdict": one_line(report.verdict),
            "subject": one_line(" ".join(report.subject)),
            "version": report.ddpdoctor,
            "environment": dict(report.facts),
        },
        "traceEvents": [_in_microseconds(each) for each in events],
    }
    return document(trace)


def _in_microseconds(event: Event) -> Event:
    return event | {name: event[name] / 1000 for name in ("ts", "dur") if name in event}


def _attempt(attempt: Attempt, first: int, name: str) -> Iterator[Event]:
    ends = completed(attempt.ranks)
    flows = _flows(attempt, first + 1)
    for line in attempt.ranks:
        pid = first + line.rank
        where = f" on {one_line(line.host)}" if line.host else ""
        events = [
            _call(call, pid, ends.get(call.key, call.at)) | flows.get((line.rank, number), {})
            for number, call in enumerate(line.calls)
        ]
        # Of a process in which nothing has happened, Perfetto shows not even the name.
        nothing = Mark(kind="end", at=0.0, until=0.0, text=line.fate)
        events += [_mark(mark, pid) for mark in line.marks or ([] if events else [nothing])]
        yield from _process(pid, f"{name}rank {line.rank}{where}: {one_line(line.fate)}", pid)
        for tid, said in _THREADS.items():
            of_thread = [each for each in events if each["tid"] == tid]
            if of_thread:
                # Perfetto has the thread first whose number is that of the process.
                yield _said("thread_name", pid, tid, name=said)
                yield _said("thread_sort_index", pid, tid, sort_index=tid)
                yield from _within(of_thread)


def _process(pid: int, name: str, order: int) -> Iterator[Event]:
    yield _said("process_name", pid, _CALLS, name=name)
    yield _said("process_sort_index", pid, _CALLS, sort_index=order)


def _said(kind: str, pid: int, tid: int, **args: Any) -> Event:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args}


def _within(events: list[Event]) -> Iterator[Event]:
    """The events of a thread, in which one slice lies within another or outside of it.

    One that outlasts what it begins in ends that.
    """
    around: list[Event] = []
    for each in sorted(events, key=lambda event: (event["ts"], -event.get("dur", 0))):
        if "dur" in each:
            begin, end = each["ts"], each["ts"] + each["dur"]
            while around and (over := around[-1]["ts"] + around[-1]["dur"]) < end:
                around.pop()["dur"] -= max(0, over - begin)
            around.append(each)
    yield from sorted(events, key=lambda event: (event["ts"], -event.get("dur", 0)))


def _slice(name: str, kind: str, pid: int, tid: int, at: float, until: float) -> Event:
    begin = round(at * 1e9)
    return {
        "ph": "X",
        "name": one_line(name),
        "cat": kind,
        "pid": pid,
        "tid": tid,
        "ts": begin,
        "dur": max(_POINT, round(until * 1e9) - begin),
    }


def _call(call: Call, pid: int, end: float) -> Event:
    args = {"group": call.group, "number": call.seq, "line": _line(call.place)}
    made = _slice(f"{call.op} #{call.seq}", "collective", pid, _CALLS, call.at, end)
    return {**made, "args": args}


def _mark(mark: Mark, pid: int) -> Event:
    tid = _SPANS.get(mark.kind, _LIFE)
    made = _slice(mark.text, mark.kind, pid, tid, mark.at, mark.until)
    if mark.kind not in _SPANS:
        del made["dur"]
        made |= {"ph": "i", "s": "t"}
    return {**made, "args": {"line": _line(mark.place)}}


def _line(place: Place | None) -> str:
    return one_line(f"{place} in {place.function}") if place else ""


def _flows(attempt: Attempt, first: int) -> dict[tuple[int, int], Event]:
    """What binds calls, each by its rank and its place: in the order in which the members came."""
    members: dict[CallKey, list[tuple[int, int, int]]] = {}
    for line in attempt.ranks:
        for place, call in enumerate(line.calls):
            if not call.alone:
                came_at = round(call.at * 1e9), line.rank, place
                members.setdefault(call.key, []).append(came_at)
    bound: dict[tuple[int, int], Event] = {}
    for number, came in enumerate(members.values(), first):
        for turn, (_, rank, place) in enumerate(sorted(came) if len(came) > 1 else ()):
            flow: Event = {"bind_id": number}
            flow |= {"flow_in": True} if turn else {}
            flow |= {"flow_out": True} if turn < len(came) - 1 else {}
            bound[rank, place] = flow
    return bound


def _findings(report: Report) -> Iterator[Event]:
    """What was found, as a list over all the time: where it stands tells nothing of a moment."""
    if not report.findings:
        return
    pid = len(report.attempts) * _PER_ATTEMPT
    yield from _process(pid, "ddpdoctor", -1)
    yield _said("thread_name", pid, _CALLS, name="findings")
    seconds = max((attempt.seconds for attempt in report.attempts), default=0.0)
    columns = [report.findings[n : n + _DEEP] for n in range(0, len(report.findings), _DEEP)]
    width = max(_POINT, round(seconds * 1e9) // len(columns))
    for number, column in enumerate(columns):
        yield from _column(column, pid, number * width, width)


def _column(findings: Sequence[Finding], pid: int, begin: int, width: int) -> Iterator[Event]:
    for each in findings:
        made = _slice(f"{each.code} {each.title}", each.severity, pid, _CALLS, 0.0, 0.0)
        args = {"cause": one_line(each.cause), "line": _line(each.place)}
        yield {**made, "ts": begin, "dur": width, "args": args}
