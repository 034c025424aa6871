"""SARIF 2.1.0, for GitHub code scanning and editors."""

from __future__ import annotations

import json
from typing import Any

from ddpdoctor import __version__
from ddpdoctor.lint.formats.fingerprints import Fingerprints, uri
from ddpdoctor.lint.report import Report
from ddpdoctor.lint.rule import Diagnostic, Rule
from ddpdoctor.lint.rules import all_rules

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"certain": "error", "likely": "warning"}


def render(report: Report, colour: bool) -> str:
    """The report as one run."""
    rules: dict[str, Rule] = {}
    for rule in all_rules():
        rules.setdefault(rule.code, rule)
    order = list(rules)
    prints = Fingerprints()
    document = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "ddpdoctor lint",
                        "version": __version__,
                        "rules": [_rule(each) for each in rules.values()],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(each, order, prints.of(each)) for each in report.diagnostics],
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            {"level": "note", "message": {"text": f"{t.path} {t.message}"}}
                            for t in report.troubles
                        ],
                    }
                ],
            }
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    title = rule.documentation.partition("\n")[0].rstrip(".")
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": title},
        "fullDescription": {"text": rule.documentation},
        "help": {"text": rule.documentation, "markdown": rule.documentation},
        "defaultConfiguration": {"level": _LEVELS[rule.confidence]},
        "properties": {"problem.severity": _LEVELS[rule.confidence], "tags": ["correctness"]},
    }


def _result(each: Diagnostic, order: list[str], fingerprint: str) -> dict[str, Any]:
    text = "\n".join([each.message, *each.notes, *([f"help: {each.help}"] if each.help else [])])
    return {
        "ruleId": each.code,
        "ruleIndex": order.index(each.code),
        "level": _LEVELS[each.confidence],
        "message": {"text": text},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": uri(each.path)},
                    "region": {
                        "startLine": each.line,
                        "startColumn": each.column,
                        "endLine": each.end_line,
                        "endColumn": each.end_column,
                    },
                }
            }
        ],
        "partialFingerprints": {"primaryLocationLineHash": fingerprint},
    }
