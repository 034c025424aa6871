"""SARIF 2.1.0, for GitHub code scanning and editors: the findings that have a line in a file."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from ddpdoctor.catalog import Finding, entries
from ddpdoctor.evidence import Place
from ddpdoctor.report import words
from ddpdoctor.report.as_json import document
from ddpdoctor.report.model import Report
from ddpdoctor.report.output import Page
from ddpdoctor.report.words import one_line

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_MOST = 5000
"""GitHub shows no more results of a run."""


def render(report: Report, page: Page | None = None) -> str:
    """The report as one run. Findings without a line are notes on the run itself."""
    known = zip(report.findings, fingerprints(report), strict=True)
    placed = [(each, fingerprint) for each, fingerprint in known if each.place is not None][:_MOST]
    others = [finding for finding in report.findings if finding.place is None]
    titles = {finding.code: finding.title for finding, _ in reversed(placed)}
    codes = list(dict.fromkeys(finding.code for finding, _ in placed))
    notes = [("error", report.failure)] if report.failure else []
    notes += [("note", f"{each.code} {each.title}: {each.cause}") for each in others]
    notes += [("note", f"not seen: {line}") for line in report.not_seen]
    log = {
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
                "results": [
                    _result(report, each, codes.index(each.code), fingerprint)
                    for each, fingerprint in placed
                ],
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            {"level": level, "message": {"text": one_line(note)}}
                            for level, note in notes
                        ],
                    }
                ],
            }
        ],
    }
    return document(log, indent=2)


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


def _result(report: Report, finding: Finding, rule: int, fingerprint: str) -> dict[str, Any]:
    placed = [(at, at.place) for at in finding.places if at.place is not None]
    first, *others = [_location(report, place, at.doing or finding.cause) for at, place in placed]
    if (span := finding.span) is not None:
        region = {
            "startColumn": span.column,
            "endLine": span.end_line,
            "endColumn": span.end_column,
        }
        first["physicalLocation"]["region"] |= region
    # The places from which it follows, from where it begins: no rank stands at them.
    chain = [found for (at, _), found in zip(placed, (first, *others), strict=True) if not at.ranks]
    steps = [{"location": each} for each in reversed(chain)]
    text = [
        f"{one_line(finding.cause)} ({words.headline(report, finding)})",
        *(one_line(" ".join(filter(None, row))) for row in words.standing(finding)),
        *map(one_line, (*finding.evidence, *finding.consequences)),
        f"help: {' '.join(words.remedy(finding))}",
    ]
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": "\n".join(text)},
        "locations": [first],
        "relatedLocations": [{"id": n, **each} for n, each in enumerate(others, 1)],
        "codeFlows": [{"threadFlows": [{"locations": steps}]}] if len(steps) > 1 else [],
        "partialFingerprints": {"primaryLocationLineHash": fingerprint},
    }


def fingerprints(report: Report) -> Iterator[str]:
    """What names each finding for a server that compares commits: not its line, which moves.

    The same again in a file is told apart by its number.
    """
    seen: Counter[str] = Counter()
    for finding in report.findings:
        excerpt = report.excerpt_of(finding)
        path = uri(report, finding.place) if finding.place else ""
        key = repr((finding.code, path, excerpt.marked.strip() if excerpt else ""))
        seen[key] += 1
        yield f"{fingerprint(f'{key} {seen[key]}')}:{seen[key]}"


def fingerprint(key: str) -> str:
    """What names something by all that it does not share with another."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:16]


def uri(report: Report, place: Place) -> str:
    """Relative to the working directory where it can be: servers want that."""
    return quote(report.path(place), errors="replace")


def _location(report: Report, place: Place, message: str) -> dict[str, Any]:
    return {
        "message": {"text": one_line(message)},
        "physicalLocation": {
            "artifactLocation": {"uri": uri(report, place)},
            "region": {"startLine": max(1, place.line)},
        },
    }
