"""Annotations for a GitHub workflow."""

from __future__ import annotations

from ddpdoctor.catalog import Finding
from ddpdoctor.report.model import Report
from ddpdoctor.report.output import Page
from ddpdoctor.report.words import one_line, remedy

_LEVELS = {"error": "error", "warning": "warning", "info": "notice"}


def render(report: Report, page: Page | None = None) -> str:
    """One workflow command per finding, for a job's failure, per thing that could not be seen."""
    told = [_command(report, each) for each in report.findings]
    if report.failure:
        told.append(
            f"::error title=ddpdoctor {report.command}::{_data(one_line(report.failure))}\n"
        )
    told += [f"::notice title=not seen::{_data(one_line(why))}\n" for why in report.not_seen]
    return "".join(told)


def _command(report: Report, each: Finding) -> str:
    said: dict[str, str] = {}
    if each.place is not None:
        said |= {"file": report.path(each.place), "line": str(each.place.line)}
    if each.span is not None:
        said |= {"endLine": str(each.span.end_line), "col": str(each.span.column)}
    said["title"] = f"{each.code} {each.title}"
    told = ",".join(f"{name}={_property(value)}" for name, value in said.items())
    text = "\n".join([*map(one_line, (each.cause, *each.evidence)), *remedy(each)])
    return f"::{_LEVELS[each.severity]} {told}::{_data(text)}\n"


def _data(text: str) -> str:
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(one_line(text)).replace(":", "%3A").replace(",", "%2C")
