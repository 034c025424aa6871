"""A report for a CI server: JUnit's XML, a suite per group and a case for all that was looked at.

A finding that is mere information fails nothing; it stands in the output. What could not be seen
is a skipped case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from ddpdoctor.catalog import Finding
from ddpdoctor.report.as_text import finding as as_text
from ddpdoctor.report.model import Case, Group, Report
from ddpdoctor.report.output import Page
from ddpdoctor.report.words import one_line

_NOT_IN_XML = re.compile(r"[^\t\n\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")


def render(report: Report, page: Page | None = None) -> str:
    """The report as one `testsuites` document."""
    root = ElementTree.Element("testsuites", name=f"ddpdoctor {report.command}")
    for group in _suites(report):
        _add_suite(root, report, group)
    _set_counts(root, report.seconds)
    ElementTree.indent(root)
    xml = ElementTree.tostring(root, encoding="unicode", xml_declaration=False)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{xml}\n'


def _suites(report: Report) -> list[Group]:
    """The groups with cases; the last, or one of its own, has what belongs to none of them too."""
    groups = [group for group in report.groups if group.cases]
    last = groups.pop() if groups else Group(title=report.command, properties=dict(report.facts))
    name = f"ddpdoctor.{report.command}"
    cases = [case for group in (*groups, last) for case in group.cases]
    known = {id(finding) for case in cases for finding in case.findings}
    alone = [finding for finding in report.findings if id(finding) not in known]
    others = [
        Case(
            name=" at ".join(filter(None, (f"{each.code} {each.title}", report.where(each)))),
            classname=name,
            findings=(each,),
        )
        for each in alone
    ]
    if report.failure:
        failure = ("failed", report.failure, report.verdict)
        others.append(Case(name="end of the job", classname=name, failure=failure))
    others += [Case(name="not seen", classname=name, skipped=why) for why in report.not_seen]
    if not cases and not others:
        others = [Case(name="nothing was found", classname=name, out=report.verdict)]
    return [*groups, last.model_copy(update={"cases": (*last.cases, *others)})]


def _add_suite(root: ElementTree.Element, report: Report, group: Group) -> None:
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=_clean(one_line(group.title)),
        timestamp=report.started.isoformat(),
    )
    _add_properties(suite, group.properties)
    for case in group.cases:
        _add_case(suite, report, case)
    times = [case.seconds or 0.0 for case in group.cases]
    _set_counts(suite, sum(times) if group.seconds is None else group.seconds)


def _add_case(suite: ElementTree.Element, report: Report, case: Case) -> None:
    element = ElementTree.SubElement(
        suite, "testcase", classname=_clean(case.classname), name=_clean(one_line(case.name))
    )
    if case.seconds is not None:
        element.set("time", f"{case.seconds:.3f}")
    _add_properties(element, case.properties)
    if case.failure is not None:
        _add_failure(element, *case.failure)
    elif not case.skipped:
        for each in (one for one in case.findings if one.severity != "info"):
            message = f"{each.code} {each.title}: {each.cause}"
            _add_failure(element, each.code, message, as_text(report, each, Page()))
    if case.skipped:
        ElementTree.SubElement(element, "skipped", message=_clean(one_line(case.skipped)))
    if told := [*_told(report, case.findings), *filter(None, [case.out])]:
        ElementTree.SubElement(element, "system-out").text = _clean("\n".join(told))


def _told(report: Report, findings: Sequence[Finding]) -> list[str]:
    return [as_text(report, each, Page()) for each in findings if each.severity == "info"]


def _add_failure(case: ElementTree.Element, type_: str, message: str, text: str) -> None:
    failure = ElementTree.SubElement(
        case, "failure", type=_clean(type_), message=_clean(one_line(message))
    )
    failure.text = _clean(text)


def _set_counts(element: ElementTree.Element, seconds: float) -> None:
    cases = list(element.iter("testcase"))
    element.set("tests", str(len(cases)))
    element.set("failures", str(sum(case.find("failure") is not None for case in cases)))
    element.set("errors", "0")
    element.set("skipped", str(sum(case.find("skipped") is not None for case in cases)))
    element.set("time", f"{seconds:.3f}")


def _add_properties(element: ElementTree.Element, values: Mapping[str, str]) -> None:
    if not any(values.values()):
        return
    properties = ElementTree.SubElement(element, "properties")
    for name, value in values.items():
        if value:
            ElementTree.SubElement(properties, "property", name=_clean(name), value=_clean(value))


def _clean(text: str) -> str:
    """Without the control characters that no XML document may hold, escaped or not."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
