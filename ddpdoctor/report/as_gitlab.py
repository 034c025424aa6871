"""GitLab's code quality report: what a merge request shows beside its lines."""

from __future__ import annotations

import hashlib
from typing import Any

from ddpdoctor.catalog import Finding
from ddpdoctor.report.as_json import document
from ddpdoctor.report.as_sarif import fingerprints, uri
from ddpdoctor.report.model import Report
from ddpdoctor.report.output import Page
from ddpdoctor.report.words import one_line

_SEVERITIES = {"error": "major", "warning": "minor", "info": "info"}


def render(report: Report, page: Page | None = None) -> str:
    """The findings as one JSON array; what has no line is said of the project."""
    known = zip(report.findings, fingerprints(report), strict=True)
    told = [_issue(report, each, name) for each, name in known]
    told += [_unseen(report, why) for why in report.not_seen]
    return document(told, indent=2)


def _unseen(report: Report, why: str) -> dict[str, Any]:
    why = one_line(why)
    return {
        "description": f"not seen: {why}",
        "check_name": "not-seen",
        "fingerprint": hashlib.sha256(
            f"{report.command} {why}".encode("utf-8", "replace")
        ).hexdigest(),
        "severity": "info",
        "location": {"path": ".", "lines": {"begin": 1, "end": 1}},
    }


def _issue(report: Report, each: Finding, fingerprint: str) -> dict[str, Any]:
    first = each.place.line if each.place else 1
    return {
        "description": one_line(f"{each.code} {each.title}: {each.cause}"),
        "check_name": each.code,
        "fingerprint": fingerprint,
        "severity": _SEVERITIES[each.severity],
        "location": {
            "path": uri(report, each.place) if each.place else ".",
            "lines": {"begin": first, "end": each.span.end_line if each.span else first},
        },
    }
