"""The model of a report: what is counted, and what the counts say."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import VERDICTS, report_of, verdict

from ddpdoctor.catalog import Kind, Pitfall, Status, Variant
from ddpdoctor.check.telling import CheckReport, told
from ddpdoctor.report.gravity import FailOn
from ddpdoctor.report.model import Report, render

RECOGNISED, _, FIX_HOLDS = VERDICTS[:3]


def one(kind: Kind, status: Status) -> CheckReport:
    """A report on one variant beside two that are as they should be."""
    return report_of(
        RECOGNISED, FIX_HOLDS, verdict("DDP101", kind, "other", status, "Try.", "Seen.")
    )


@pytest.mark.parametrize(
    ("kind", "status", "plain", "by_name", "strict"),
    [
        ("broken", "recognised", 0, 0, 0),
        ("broken", "misdiagnosed", 1, 1, 1),
        ("broken", "not reproduced", 0, 0, 3),
        ("broken", "not checked", 0, 3, 3),
        ("documented", "holds", 0, 0, 0),
        ("documented", "in part", 0, 0, 0),
        ("documented", "fails", 0, 0, 0),
        ("documented", "aid", 0, 0, 0),
        ("documented", "not checked", 0, 3, 3),
        ("fix", "holds", 0, 0, 0),
        ("fix", "in part", 1, 1, 1),
        ("fix", "fails", 1, 1, 1),
        ("fix", "not checked", 0, 3, 3),
    ],
)
def test_the_exit_code_follows_from_the_verdicts(
    kind: Kind, status: Status, plain: int, by_name: int, strict: int
) -> None:
    report = one(kind, status)
    assert report.exit_code(FailOn.warning, asked_by_name=False) == plain
    assert report.exit_code(FailOn.warning, asked_by_name=True) == by_name
    assert report.exit_code(FailOn.unchecked, asked_by_name=False) == strict


def test_a_problem_outranks_what_could_not_be_checked() -> None:
    problem = verdict("DDP101", "fix", "other", "fails", "Try.", "Seen.")
    unchecked = verdict("DDP101", "fix", "third", "not checked", "Try.", "Seen.")
    report = report_of(problem, unchecked)
    assert report.exit_code(FailOn.unchecked, asked_by_name=True) == 1
    assert report.exit_code(FailOn.never, asked_by_name=True) == 3


def test_the_summary_counts_every_verdict_once(report: CheckReport) -> None:
    counts = report.summary.model_dump()
    assert counts.pop("problems") == 2
    assert counts == {
        "recognised": 3,
        "misdiagnosed": 1,
        "not_reproduced": 1,
        "advice_holds": 2,
        "advice_in_part": 2,
        "advice_aids": 0,
        "advice_fails": 2,
        "fixes_hold": 4,
        "fixes_fail": 1,
        "not_checked": 1,
    }
    assert sum(counts.values()) == len(report.verdicts)


def test_what_could_not_be_checked_is_listed_by_reason() -> None:
    verdicts = [
        verdict("DDP101", "fix", name, "not checked", "Try.", reason)
        for name, reason in (("a", "needs root"), ("b", "no GPU"), ("c", "needs root"))
    ]
    assert report_of(*verdicts).not_checked == {
        "needs root": ("DDP101 a", "DDP101 c"),
        "no GPU": ("DDP101 b",),
    }


def test_json_loses_nothing(report: CheckReport) -> None:
    again = Report.model_validate_json(render(told(report), "json"))
    assert CheckReport.model_validate(again.data) == report


def test_what_a_newer_doctor_has_measured_can_be_read(report: CheckReport) -> None:
    newer = json.loads(render(told(report), "json"))
    newer["data"]["invented_later"] = 1
    assert CheckReport.model_validate(Report.model_validate(newer).data) == report


def test_json_stays_json_where_a_path_is_no_text() -> None:
    report = report_of(verdict("DDP101", "fix", "it", "fails", "Try.", "in caf\udce9.py"))
    again = Report.model_validate_json(render(told(report), "json"))
    assert again.data["verdicts"][0]["evidence"] == "in caf?.py"


@given(st.permutations(range(4)))
def test_verdicts_stand_in_the_order_of_the_catalogue_however_they_came(order: list[int]) -> None:
    variants = ("wrong", "advice", "cure", "other")
    pitfalls = [
        Pitfall(
            code="DDP101",
            title="dict-config",
            family="launch",
            symptoms=("crash",),
            severity="error",
            sources=("S0",),
            summary="Breaks.",
            remedy="Holds.",
            page=Path("a.md"),
            proof=Path("a.py"),
            sections={},
            variants=tuple(
                Variant(name=name, kind="fix", summary="Try.", line=n)
                for n, name in enumerate(variants)
            ),
        )
    ]
    came = [verdict("DDP101", "fix", variants[n], "holds", "Try.", "Seen.") for n in order]
    report = CheckReport.of(
        pitfalls,
        came,
        backend="gloo",
        nproc=4,
        started=datetime(2026, 1, 2, tzinfo=UTC),
        seconds=1.0,
    )
    assert tuple(v.variant for v in report.verdicts) == variants
    assert report.pitfalls[0].title == "dict-config"
    assert report.torch
    assert report.python
