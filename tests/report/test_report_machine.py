"""The reports that programs read: JUnit's XML, and Markdown."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from report_samples import report_of, verdict

from ddpdoctor.catalog import Kind, Status
from ddpdoctor.check.telling import CheckReport, told
from ddpdoctor.report.model import render


def case(report: CheckReport, name: str) -> ElementTree.Element:
    found = ElementTree.fromstring(render(told(report), "junit")).find(
        f".//testcase[@name='{name}']"
    )
    assert found is not None
    return found


def test_junit_has_a_suite_per_pitfall_and_a_case_per_variant(report: CheckReport) -> None:
    root = ElementTree.fromstring(render(told(report), "junit"))
    assert [suite.get("name") for suite in root] == [f"{h.code} {h.title}" for h in report.pitfalls]
    cases = [(c.get("classname"), c.get("name")) for c in root.iter("testcase")]
    assert len(cases) == len(set(cases)) == len(report.verdicts)


def test_junit_counts_what_it_lists(report: CheckReport) -> None:
    root = ElementTree.fromstring(render(told(report), "junit"))
    for element in (root, *root):
        for attribute, tag in (
            ("tests", "testcase"),
            ("failures", "failure"),
            ("skipped", "skipped"),
        ):
            assert int(element.get(attribute, "")) == len(list(element.iter(tag)))
    assert root.get("failures") == str(report.summary.problems)


@pytest.mark.parametrize(
    ("kind", "status", "outcome"),
    [
        ("broken", "recognised", None),
        ("broken", "misdiagnosed", "failure"),
        ("broken", "not reproduced", "skipped"),
        ("documented", "fails", None),
        ("documented", "in part", None),
        ("documented", "aid", None),
        ("documented", "not checked", "skipped"),
        ("fix", "in part", "failure"),
        ("fix", "fails", "failure"),
        ("fix", "not checked", "skipped"),
    ],
)
def test_junit_fails_what_the_exit_code_fails_and_skips_what_was_not_seen(
    kind: Kind, status: Status, outcome: str | None
) -> None:
    report = report_of(verdict("DDP101", kind, "it", status, "Try.", "needs root"))
    word = {"broken": "broken", "documented": "advice", "fix": "fix"}[kind]
    found = case(report, f"{word}: it")
    assert [child.tag for child in found if child.tag in ("failure", "skipped")] == (
        [outcome] if outcome else []
    )
    if outcome:
        assert "needs root" in (found.find(outcome).get("message") or "")  # type: ignore[union-attr]


def test_junit_tells_of_advice_that_fails_without_failing(report: CheckReport) -> None:
    found = case(report, "advice: unwrap_before_state_dict")
    properties = {p.get("name"): p.get("value") for p in found.iter("property")}
    assert properties == {"status": "fails", "source": "004 fix 2"}
    assert "DOES NOT HOLD: the same deadlock" in (found.findtext("system-out") or "")


@given(st.text(), st.text())
def test_junit_is_xml_whatever_the_ranks_said(summary: str, evidence: str) -> None:
    report = report_of(verdict("DDP101", "fix", "it", "fails", summary, evidence))
    assert case(report, "fix: it").find("failure") is not None


def test_markdown_has_a_row_for_each_variant_and_says_what_to_do(report: CheckReport) -> None:
    text = render(told(report), "markdown")
    rows = [line for line in text.splitlines() if re.match(r"\| (broken|advice|fix) \|", line)]
    assert len(rows) == len(report.verdicts)
    assert "| advice | **DOES NOT HOLD** | Unwrap the model before state\\_dict(). \\[" in text
    assert "- **DDP504** Save atomically" in text.split("## What to do")[1]


@given(st.text(), st.text(), st.text())
def test_no_text_breaks_a_markdown_table_or_smuggles_in_html(
    summary: str, evidence: str, source: str
) -> None:
    one = verdict("DDP101", "documented", "it", "fails", summary, evidence, source=source)
    (row,) = (
        r for r in render(told(report_of(one)), "markdown").split("\n") if r.startswith("| advice")
    )
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 5
    read = MarkdownIt("commonmark").enable("table").render(f"|a|b|c|d|\n|-|-|-|-|\n{row}")
    cells = re.findall(r"<td>(.*)</td>", read)
    assert len(cells) == 4
    inert = re.compile(r"(<code>|</code>|<strong>DOES NOT HOLD</strong>|[^<>])*")
    assert all(inert.fullmatch(cell) for cell in cells)
