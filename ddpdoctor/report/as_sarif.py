"""SARIF 2.1.0, for GitHub code scanning and editors: the findings that have a line in a file."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from itertools import zip_longest
from typing import Any
from urllib.parse import quote

from ddpdoctor.catalog import Finding, entries
from ddpdoctor.evidence import Place
from ddpdoctor.report.model import Report
from ddpdoctor.report.run import words
from ddpdoctor.report.words import one_line

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_MOST = 5000
"""GitHub shows no more results of a run."""
_Span = tuple[int, int, int] | None


def render(report: Report) -> str:
    """The report as one run. Findings without a line are notes on the run itself."""
    known = list(zip_longest(report.findings, report.spans))
    placed = [(finding, span) for finding, span in known if finding.place is not None][:_MOST]
    others = [finding for finding in report.findings if finding.place is None]
    titles = {finding.code: finding.title for finding, _ in reversed(placed)}
    codes = list(dict.fromkeys(finding.code for finding, _ in placed))
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
                        "name": f"ddpdoctor {report.command}",
                        "version": report.ddpdoctor,
                        "rules": [_rule(code, titles[code]) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "properties": {"environment": dict(report.facts)},
                "results": [_result(report, each, span, codes, seen) for each, span in placed],
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
    rule: dict[str, Any] = {
        "id": code,
        "name": title,
        "shortDescription": {"text": title},
        "help": {"text": f"More: ddpdoctor explain {code}"},
        "properties": {"tags": ["correctness", "distributed"]},
    }
    if (entry := entries().get(code)) is not None:
        level = _LEVELS[entry.severity]
        rule["fullDescription"] = {"text": entry.summary}
        rule["help"] = {"text": f"{entry.remedy} More: ddpdoctor explain {code}"}
        rule["defaultConfiguration"] = {"level": level}
        if level != "note":
            rule["properties"]["problem.severity"] = level
    return rule


def _result(
    report: Report, finding: Finding, span: _Span, codes: list[str], seen: Counter[str]
) -> dict[str, Any]:
    first, *others = [
        _location(report, at.place, at.doing) for at in finding.places if at.place is not None
    ]
    if span is not None:
        column, end, end_column = span
        region = {"startColumn": column, "endLine": end, "endColumn": end_column}
        first["physicalLocation"]["region"] |= region
    uri = first["physicalLocation"]["artifactLocation"]["uri"]
    excerpt = report.excerpt_at(finding.place)
    line = excerpt.lines[excerpt.line - excerpt.first].strip() if excerpt else ""
    key = repr((finding.code, uri, line))
    seen[key] += 1
    digest = hashlib.sha256(f"{key} {seen[key]}".encode("utf-8", "replace")).hexdigest()[:16]
    text = [
        f"{one_line(finding.cause)} ({words.headline(report, finding)})",
        *(one_line(" ".join(filter(None, row))) for row in words.rows(finding)),
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
        "codeFlows": _flows(report, finding),
        "partialFingerprints": {"primaryLocationLineHash": f"{digest}:{seen[key]}"},
    }


def _flows(report: Report, finding: Finding) -> list[dict[str, Any]]:
    """The places from which it follows, from where it begins: no rank stands at them."""
    steps = [
        {"location": _location(report, at.place, at.doing)}
        for at in reversed(finding.places)
        if at.place is not None and not at.ranks
    ]
    return [{"threadFlows": [{"locations": steps}]}] if len(steps) > 1 else []


def _location(report: Report, place: Place, message: str) -> dict[str, Any]:
    """Relative to the working directory where it can be: code scanning wants that."""
    path = report.shown(place).rpartition(":")[0]
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(path, errors="replace")},
            "region": {"startLine": max(1, place.line)},
        }
    }
    return location | ({"message": {"text": one_line(message)}} if message else {})
