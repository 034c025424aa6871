"""A report for a CI server: JUnit's XML, a case for each rank and one for what no rank did alone.

A rank fails with the findings that name it as a culprit. A finding that is mere information fails
nothing; it stands in the output. What could not be seen is a skipped case.
"""

from __future__ import annotations

from xml.etree import ElementTree

from ddpdoctor.catalog import Finding
from ddpdoctor.report.as_junit import clean
from ddpdoctor.report.output import Page
from ddpdoctor.report.run import words
from ddpdoctor.report.run.as_text import finding as as_text
from ddpdoctor.report.run.model import RunReport
from ddpdoctor.report.words import one_line

_JOB = "job"


def render(report: RunReport) -> str:
    """The report as one `testsuites` document with a single suite."""
    root = ElementTree.Element("testsuites", name=f"ddpdoctor {report.kind}")
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=clean(one_line(" ".join(report.command))),
        timestamp=report.started.isoformat(),
        time=f"{report.seconds:.3f}",
    )
    by_rank: dict[int, list[Finding]] = {line.rank: [] for line in report.ranks}
    alone: list[Finding] = []
    for finding in report.findings:
        # One failure for one cause, whichever number of ranks share it.
        by_rank.get(min(finding.ranks, default=-1), alone).append(finding)
    for line in report.ranks:
        case = _case(report, suite, f"rank {line.rank}", by_rank[line.rank])
        _output(case, f"{line.fate}; {line.steps} optimizer steps")
    _output(_case(report, suite, _JOB, alone), words.summary(report))
    for reason in report.not_seen:
        case = _case(report, suite, "not seen", [])
        ElementTree.SubElement(case, "skipped", message=clean(one_line(reason)))
    for element in (root, suite):
        element.set("tests", str(len(suite)))
        element.set("failures", str(len(suite.findall("testcase/failure/.."))))
        element.set("errors", "0")
        element.set("skipped", str(len(report.not_seen)))
    ElementTree.indent(root)
    xml = ElementTree.tostring(root, encoding="unicode", xml_declaration=False)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{xml}\n'


def _case(
    report: RunReport, suite: ElementTree.Element, name: str, findings: list[Finding]
) -> ElementTree.Element:
    case = ElementTree.SubElement(
        suite, "testcase", classname=f"ddpdoctor.{report.kind}", name=name
    )
    for finding in (each for each in findings if each.severity != "info"):
        message = f"{finding.code} {finding.title}: {finding.cause}"
        failure = ElementTree.SubElement(
            case, "failure", type=finding.code, message=clean(one_line(message))
        )
        failure.text = clean(as_text(report, finding, Page()))
    for finding in (each for each in findings if each.severity == "info"):
        _output(case, as_text(report, finding, Page()))
    return case


def _output(case: ElementTree.Element, text: str) -> None:
    out = case.find("system-out")
    if out is None:
        out = ElementTree.SubElement(case, "system-out")
    out.text = "\n".join(filter(None, (out.text, clean(text))))
