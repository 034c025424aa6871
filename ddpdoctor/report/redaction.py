"""A report without what belongs to the user alone: paths, source lines and arguments.

What stays is what the finding is about: codes, ranks, names of files without their folders, line
numbers, names of functions and parameters.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TypeVar

from ddpdoctor.catalog import Finding, RankPlace
from ddpdoctor.evidence import Place
from ddpdoctor.report.job import completed_by
from ddpdoctor.report.lives import Attempt, Call, Mark, RankLine
from ddpdoctor.report.model import Report

_LEFT_OUT = "…"
_TELLING = ("file", "warning")
_PATH = re.compile(r"(?<![\w.])(?:~|\.{1,2}|[\w.-]+)?(?:/[\w.@+~=%-]+)+/?")
Placed = TypeVar("Placed", Mark, Call)
_QUOTED = re.compile(r"`[^`]*`|'[^'\n]*'|\"[^\"\n]*\"")


def redacted(report: Report) -> Report:
    """The same report on a job, with nothing in it that was the user's own."""
    told = {
        "subject": (PurePath(report.subject[0]).name, _LEFT_OUT) if report.subject else (),
        "machine": "",
        "directory": "",
        "attempts": tuple(_attempt(each) for each in report.attempts),
        "findings": tuple(redacted_finding(each) for each in report.findings),
        "failure": _text(report.failure),
        "not_seen": tuple(map(_text, report.not_seen)),
        "unread": tuple(PurePath(each).name for each in report.unread),
        "run_dir": "",
        "excerpts": (),
    }
    return completed_by(report.model_copy(update=told))


def redacted_finding(finding: Finding) -> Finding:
    """One finding, told without quoting. Evidence, which is all quotation, is left out."""
    return finding.model_copy(
        update={
            "places": tuple(_rank_place(each) for each in finding.places),
            "cause": _text(finding.cause),
            "evidence": (),
            "consequences": tuple(map(_text, finding.consequences)),
            "cure": finding.cure.model_copy(update={"text": _text(finding.cure.text)}),
        }
    )


def _text(text: str) -> str:
    return _PATH.sub(_LEFT_OUT, _QUOTED.sub(_LEFT_OUT, text))


def _place(place: Place | None) -> Place | None:
    return place and Place(PurePath(place.file).name, place.line, place.function)


def _rank_place(each: RankPlace) -> RankPlace:
    told = {"place": _place(each.place), "doing": _text(each.doing), "hosts": ()}
    return each.model_copy(update=told)


def _attempt(attempt: Attempt) -> Attempt:
    return attempt.model_copy(update={"ranks": tuple(map(_rank_line, attempt.ranks))})


def _rank_line(line: RankLine) -> RankLine:
    told = {
        "host": "",
        "place": _place(line.place),
        "stack": tuple(map(_place, line.stack)),
        "fate": _text(line.fate),
        "marks": tuple(_placed(mark) for mark in line.marks if mark.kind not in _TELLING),
        "calls": tuple(map(_placed, line.calls)),
    }
    return line.model_copy(update=told)


def _placed(each: Placed) -> Placed:
    return each.model_copy(update={"place": _place(each.place)})
