"""SARIF 2.1.0, for GitHub code scanning and editors: the findings that have a line in a file."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any
from urllib.parse import quote

from ddpdoctor.catalog import Finding
from ddpdoctor.evidence import Place
from ddpdoctor.report.run import words
from ddpdoctor.report.run.model import RunReport
from ddpdoctor.report.words import one_line

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_MOST = 5000
"""GitHub shows no more results of a run."""


def render(report: RunReport) -> str:
    """The report as one run. Findings without a line are notes on the run itself."""
    placed = [finding for finding in report.findings if finding.place is not None][:_MOST]
    others = [finding for finding in report.findings if finding.place is None]
    codes = list(dict.fromkeys(finding.code for finding in placed))
    titles = {finding.code: finding.title for finding in reversed(placed)}
    seen: Counter[str] = Counter()
    notes = [one_line(f"{each.code} {each.title}: {each.cause}") for each in others]
    notes += [one_line(f"not seen: {line}") for line in report.not_seen]
    document = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": f"ddpdoctor {report.kind}",
                        "version": report.ddpdoctor,
                        "rules": [_rule(code, titles[code]) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(report, each, codes, seen) for each in placed],
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            {"level": "note", "message": {"text": note}} for note in notes
                        ],
                    }
                ],
            }
        ],
    }
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode("utf-8") + "\n"


def _rule(code: str, title: str) -> dict[str, Any]:
    more = f"More: ddpdoctor explain {code}"
    return {
        "id": code,
        "name": title,
        "shortDescription": {"text": title},
        "help": {"text": more, "markdown": f"More: `ddpdoctor explain {code}`"},
        "properties": {"tags": ["correctness", "distributed"]},
    }


def _result(
    report: RunReport, finding: Finding, codes: list[str], seen: Counter[str]
) -> dict[str, Any]:
    first, *others = [_location(report, p.place) for p in finding.places if p.place is not None]
    uri = first["physicalLocation"]["artifactLocation"]["uri"]
    excerpt = report.excerpt_at(finding.place)
    line = excerpt.lines[excerpt.line - excerpt.first].strip() if excerpt else ""
    key = repr((finding.code, uri, line))
    seen[key] += 1
    digest = hashlib.sha256(f"{key} {seen[key]}".encode("utf-8", "replace")).hexdigest()[:16]
    text = [
        f"{one_line(finding.cause)} ({words.headline(report, finding)})",
        *(one_line(" ".join(filter(None, row))) for row in words.rows(report, finding)),
        *map(one_line, (*finding.evidence, *finding.consequences)),
        f"help: {words.remedy(finding)}",
    ]
    return {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": _LEVELS[finding.severity],
        "message": {"text": "\n".join(text)},
        "locations": [first],
        "relatedLocations": [{"id": n, **each} for n, each in enumerate(others, 1)],
        "partialFingerprints": {"primaryLocationLineHash": f"{digest}:{seen[key]}"},
    }


def _location(report: RunReport, place: Place) -> dict[str, Any]:
    """Relative to the working directory where it can be: code scanning wants that."""
    path = report.shown(place).rpartition(":")[0]
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(path, errors="replace")},
            "region": {"startLine": max(1, place.line)},
        }
    }
