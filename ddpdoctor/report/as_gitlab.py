"""GitLab's code quality report: what a merge request shows beside its lines."""

from __future__ import annotations

from typing import Any

from ddpdoctor.catalog import Finding
from ddpdoctor.report.as_json import document
from ddpdoctor.report.as_sarif import fingerprint, fingerprints, uri
from ddpdoctor.report.model import Report
from ddpdoctor.report.output import Page
from ddpdoctor.report.words import one_line

_SEVERITIES = {"error": "major", "warning": "minor", "info": "info"}


def render(report: Report, page: Page | None = None) -> str:
    """The findings as one JSON array; what has no line is said of the project."""
    known = zip(report.findings, fingerprints(report), strict=True)
    told = [_of_finding(report, each, name) for each, name in known]
    others = [(why, "job-failed", "major") for why in filter(None, [report.failure])]
    others += [(f"not seen: {why}", "not-seen", "info") for why in report.not_seen]
    for why, kind, severity in others:
        told.append(_issue(why, kind, fingerprint(f"{report.command} {one_line(why)}"), severity))
    return document(told, indent=2)


def _of_finding(report: Report, each: Finding, name: str) -> dict[str, Any]:
    told, severity = f"{each.code} {each.title}: {each.cause}", _SEVERITIES[each.severity]
    if (place := each.place) is None:
        return _issue(told, each.code, name, severity)
    last = each.span.end_line if each.span else place.line
    return _issue(told, each.code, name, severity, uri(report, place), place.line, last)


def _issue(
    told: str, kind: str, name: str, severity: str, path: str = ".", first: int = 1, last: int = 1
) -> dict[str, Any]:
    return {
        "description": one_line(told),
        "check_name": kind,
        "fingerprint": name,
        "severity": severity,
        "location": {"path": path, "lines": {"begin": first, "end": last}},
    }
