"""A trace that ui.perfetto.dev opens: Chrome's JSON trace event format.

Its schema is the "Trace Event Format" of Chromium's catapult project.

Each rank is a process, with threads for what its Python code called, what became of it, and its
files. The calls of one collective are bound by a flow, from the rank that came first to the one
that came last. Times are microseconds since the first thing that is known of the launch.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from ddpdoctor.evidence import Place
from ddpdoctor.report.as_json import document
from ddpdoctor.report.lives import Attempt, Call, Mark, RankLine, completed
from ddpdoctor.report.model import Report
from ddpdoctor.report.output import Page
from ddpdoctor.report.words import one_line

_CALLS, _LIFE, _FILES = 1, 2, 3
_THREADS = {_CALLS: "collectives", _LIFE: "life", _FILES: "files"}
_SPANS = {"blocked": _LIFE, "paused": _LIFE, "file": _FILES}
_POINT = 1.0
"""Microseconds that are drawn of what has no length."""
_PER_ATTEMPT = 1_000_000
"""Process numbers of one launch lie below those of the next."""


def render(report: Report, page: Page | None = None) -> str:
    """All launches, one below the other; the findings are marks at the head."""
    events: list[dict[str, Any]] = []
    for number, attempt in enumerate(report.attempts):
        events += _attempt(attempt, number * _PER_ATTEMPT)
    events += _findings(report)
    trace = {
        "displayTimeUnit": "ms",
        "otherData": {
            "command": f"ddpdoctor {report.command}",
            "verdict": one_line(report.verdict),
            "subject": one_line(" ".join(report.subject)),
            "version": report.ddpdoctor,
            "environment": dict(report.facts),
        },
        "traceEvents": events,
    }
    return document(trace)


def _attempt(attempt: Attempt, first: int) -> Iterator[dict[str, Any]]:
    ends = completed(attempt.ranks)
    for line in attempt.ranks:
        pid = first + line.rank + 1
        where = f" on {one_line(line.host)}" if line.host else ""
        yield _name("process_name", pid, 0, f"rank {line.rank}{where}: {one_line(line.fate)}")
        yield {"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}
        yield from (_name("thread_name", pid, tid, name) for tid, name in _THREADS.items())
        yield from _in_turn([_call(each, pid, ends.get(each.key, each.at)) for each in line.calls])
        marks = [_mark(mark, pid) for mark in line.marks]
        for tid in (_LIFE, _FILES):
            yield from _in_turn([each for each in marks if each["tid"] == tid])
    yield from _flows(attempt, first)


def _in_turn(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The slices of a thread, each ended where the next begins: none may overlap another."""
    spans = sorted((each for each in made if each["ph"] == "X"), key=lambda each: each["ts"])
    for one, following in pairwise(spans):
        one["dur"] = max(0.0, min(one["dur"], round(following["ts"] - one["ts"], 3)))
    return made


def _name(kind: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def _slice(name: str, kind: str, pid: int, tid: int, at: float, until: float) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": one_line(name),
        "cat": kind,
        "pid": pid,
        "tid": tid,
        "ts": round(at * 1e6, 3),
        "dur": round(max(_POINT, (until - at) * 1e6), 3),
    }


def _call(call: Call, pid: int, end: float) -> dict[str, Any]:
    args = {"group": call.group, "number": call.seq, "line": _line(call.place)}
    made = _slice(f"{call.op} #{call.seq}", "collective", pid, _CALLS, call.at, end)
    return {**made, "args": args}


def _mark(mark: Mark, pid: int) -> dict[str, Any]:
    tid = _SPANS.get(mark.kind, _LIFE)
    made = _slice(mark.text, mark.kind, pid, tid, mark.at, mark.until)
    if mark.kind not in _SPANS:
        del made["dur"]
        made |= {"ph": "i", "s": "t"}
    return {**made, "args": {"line": _line(mark.place)}}


def _line(place: Place | None) -> str:
    return one_line(f"{place} in {place.function}") if place else ""


def _flows(attempt: Attempt, first: int) -> Iterator[dict[str, Any]]:
    """From member to member in the order in which they came."""
    members: dict[tuple[str, int, str], list[tuple[float, RankLine]]] = {}
    for line in attempt.ranks:
        for call in line.calls:
            if not call.alone:
                members.setdefault(call.key, []).append((call.at, line))
    for number, came in enumerate(members.values(), first + 1):
        came.sort(key=lambda each: (each[0], each[1].rank))
        for place, (at, line) in enumerate(came if len(came) > 1 else ()):
            phase = "s" if place == 0 else "f" if place == len(came) - 1 else "t"
            yield {
                "ph": phase,
                "id": number,
                "name": "collective",
                "cat": "flow",
                "pid": first + line.rank + 1,
                "tid": _CALLS,
                "ts": round(at * 1e6, 3),
                **({"bp": "e"} if phase == "f" else {}),
            }


def _findings(report: Report) -> Iterator[dict[str, Any]]:
    """What was found, on a process of its own; where it shows nothing is told of a moment."""
    if report.findings:
        yield _name("process_name", 0, 0, "ddpdoctor")
    for number, each in enumerate(report.findings):
        made = _slice(f"{each.code} {each.title}", each.severity, 0, 1, number * 1e-3, 0.0)
        args = {"cause": one_line(each.cause), "line": _line(each.place)}
        yield {**made, "args": args}
