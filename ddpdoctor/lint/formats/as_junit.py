"""For a CI server: a suite per file, a failing case per finding, a skipped one per trouble."""

from __future__ import annotations

import re
from itertools import groupby
from xml.etree import ElementTree

from ddpdoctor.lint.report import Report

_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")


def render(report: Report, colour: bool) -> str:
    """The report as one `testsuites` document."""
    root = ElementTree.Element("testsuites", name="ddpdoctor lint")
    total = len(report.diagnostics) + len(report.troubles)
    root.set("tests", str(max(total, 1)))
    root.set("failures", str(len(report.diagnostics)))
    for path, group in groupby(report.diagnostics, key=lambda each: each.path):
        found = list(group)
        suite = _suite(root, path, len(found), failures=len(found))
        for each in found:
            name = f"{each.code} {each.name} line {each.line}"
            case = ElementTree.SubElement(suite, "testcase", classname=_clean(path), name=name)
            failure = ElementTree.SubElement(case, "failure", message=_clean(each.message))
            failure.set("type", each.confidence)
            failure.text = _clean("\n".join([each.excerpt.strip()[:200], *each.notes, each.help]))
    for trouble in report.troubles:
        suite = _suite(root, trouble.path, 1, skipped=1)
        case = ElementTree.SubElement(
            suite, "testcase", classname=_clean(trouble.path), name="not checked"
        )
        ElementTree.SubElement(case, "skipped", message=_clean(trouble.message))
    if not total:
        suite = _suite(root, "lint", 1)
        ElementTree.SubElement(suite, "testcase", classname="lint", name="no findings")
    ElementTree.indent(root)
    xml = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{xml}\n'


def _suite(
    root: ElementTree.Element, name: str, tests: int, *, failures: int = 0, skipped: int = 0
) -> ElementTree.Element:
    suite = ElementTree.SubElement(root, "testsuite", name=_clean(name))
    counts = {"tests": tests, "failures": failures, "skipped": skipped, "errors": 0}
    for key, value in counts.items():
        suite.set(key, str(value))
    return suite


def _clean(text: str) -> str:
    return _NOT_IN_XML.sub("�", text)
