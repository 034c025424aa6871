"""For programs: one document, with the findings in the shape that all commands share."""

from __future__ import annotations

import json
from typing import Any

from ddpdoctor import __version__
from ddpdoctor.lint.report import Report
from ddpdoctor.lint.rule import Diagnostic

SCHEMA_VERSION = 1


def render(report: Report, colour: bool) -> str:
    """The report as JSON."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "command": "lint",
        "ddpdoctor": __version__,
        "files": report.files,
        "fixed": report.fixed,
        "suppressed": report.suppressed,
        "findings": [_finding(each) for each in report.diagnostics],
        "not_checked": [{"path": each.path, "reason": each.message} for each in report.troubles],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _finding(each: Diagnostic) -> dict[str, Any]:
    location = {
        "path": each.path,
        "line": each.line,
        "column": each.column,
        "end_line": each.end_line,
        "end_column": each.end_column,
        "cell": each.cell or None,
    }
    fix = None
    if each.fix:
        fix = {
            "safe": each.fix.safe,
            "edits": [
                {"start": list(e.start), "end": list(e.end), "text": e.text} for e in each.fix.edits
            ],
        }
    return {**each.finding().model_dump(), "location": location, "fix": fix}
