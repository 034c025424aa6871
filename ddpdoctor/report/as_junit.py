"""A report for a CI server: JUnit's XML, a suite per pitfall and a case per variant.

Advice that does not hold passes, as it does for the exit code; what became of it stands in the
case's properties and output. What could not be checked, or did not fail here, is skipped.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from ddpdoctor.catalog import Verdict
from ddpdoctor.report.model import CheckReport, Heading
from ddpdoctor.report.words import KINDS, STATUSES, details, located

_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")


def render(report: CheckReport) -> str:
    """The report as one `testsuites` document."""
    root = ElementTree.Element("testsuites", name="ddpdoctor check")
    for heading in report.pitfalls:
        _add_suite(root, report, heading)
    _set_counts(root, report.verdicts)
    ElementTree.indent(root)
    xml = ElementTree.tostring(root, encoding="unicode", xml_declaration=False)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{xml}\n'


def _add_suite(root: ElementTree.Element, report: CheckReport, heading: Heading) -> None:
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=clean(f"{heading.code} {heading.title}"),
        timestamp=report.started.isoformat(),
    )
    _set_counts(suite, report.of_pitfall(heading.code))
    _add_properties(
        suite,
        {
            "summary": heading.summary,
            "nproc": str(report.nproc),
            "backend": report.backend,
            "torch": report.torch,
            "python": report.python,
            "ddpdoctor": report.ddpdoctor,
        },
    )
    for verdict in report.of_pitfall(heading.code):
        _add_case(suite, verdict)


def _add_case(suite: ElementTree.Element, verdict: Verdict) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=f"ddpdoctor.{verdict.code}",
        name=clean(f"{KINDS[verdict.kind]}: {verdict.variant}"),
        time=f"{verdict.seconds:.3f}",
    )
    _add_properties(case, {"status": verdict.status, "source": verdict.source})
    seen = details(verdict)
    if verdict.is_problem:
        failure = ElementTree.SubElement(
            case, "failure", message=clean(seen), type=verdict.status.replace(" ", "-")
        )
        failure.text = clean("\n".join(f"{f.code} {located(f)}" for f in verdict.findings))
    elif verdict.status in ("not checked", "not reproduced"):
        ElementTree.SubElement(case, "skipped", message=clean(f"{verdict.status}: {seen}"))
    out = ElementTree.SubElement(case, "system-out")
    out.text = clean(f"{verdict.summary}\n{STATUSES[verdict.status]}: {seen}")


def _set_counts(element: ElementTree.Element, verdicts: tuple[Verdict, ...]) -> None:
    skipped = sum(v.status in ("not checked", "not reproduced") for v in verdicts)
    element.set("tests", str(len(verdicts)))
    element.set("failures", str(sum(verdict.is_problem for verdict in verdicts)))
    element.set("errors", "0")
    element.set("skipped", str(skipped))
    element.set("time", f"{sum(verdict.seconds for verdict in verdicts):.3f}")


def _add_properties(element: ElementTree.Element, values: dict[str, str]) -> None:
    properties = ElementTree.SubElement(element, "properties")
    for name, value in values.items():
        if value:
            ElementTree.SubElement(properties, "property", name=name, value=clean(value))


def clean(text: str) -> str:
    """Without the control characters that no XML document may hold, escaped or not."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
