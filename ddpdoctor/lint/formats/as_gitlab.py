"""GitLab's code quality report: what a merge request shows beside its lines."""

from __future__ import annotations

import json
from typing import Any

from ddpdoctor.lint.formats.fingerprints import Fingerprints, uri
from ddpdoctor.lint.report import Report
from ddpdoctor.lint.rule import Diagnostic

_SEVERITIES = {"certain": "major", "likely": "minor"}


def render(report: Report, colour: bool) -> str:
    """The findings as one JSON array."""
    prints = Fingerprints()
    issues = [_issue(each, prints.of(each)) for each in report.diagnostics]
    return json.dumps(issues, indent=2, ensure_ascii=False) + "\n"


def _issue(each: Diagnostic, fingerprint: str) -> dict[str, Any]:
    return {
        "description": f"{each.code} {each.name}: {each.message}",
        "check_name": each.code,
        "fingerprint": fingerprint,
        "severity": _SEVERITIES[each.confidence],
        "location": {
            "path": uri(each.path),
            "lines": {"begin": each.line, "end": max(each.line, each.end_line)},
        },
    }
