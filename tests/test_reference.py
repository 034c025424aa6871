"""The committed report belongs to the catalogue as it is, and differences from it are seen."""

from __future__ import annotations

from pathlib import Path

from ddpdoctor import catalog
from ddpdoctor.report.words import KINDS, markdown_prose
from tests.reference import differences, verdicts

REFERENCE = Path(__file__).parent.parent / "reports" / "reference" / "gloo-4-ranks.md"


def test_the_reference_has_every_form_of_the_catalogue_and_no_other() -> None:
    forms = {
        (
            pitfall.code,
            KINDS[each.kind],
            markdown_prose(each.summary + (each.source and f" [{each.source}]"), in_table=True),
        )
        for pitfall in catalog.load().values()
        for each in pitfall.variants
    }
    assert set(verdicts(REFERENCE.read_text("utf-8"))) == forms


def test_another_verdict_is_a_difference_and_what_was_not_checked_is_none() -> None:
    one, two = ("DDP101", "fix", "Parse first."), ("DDP107", "fix", "Name none.")
    reference = {one: "holds", two: "holds"}
    assert differences(reference, reference) == []
    assert differences(reference, {one: "holds", two: "not checked"}) == []
    assert differences(reference, {one: "DOES NOT HOLD", two: "holds"}) == [
        "DDP101 | fix | Parse first.: holds in the reference, DOES NOT HOLD here"
    ]
    assert differences(reference, {one: "holds"}) == [
        "DDP107 | fix | Name none.: holds in the reference, absent here"
    ]


def test_what_a_race_decides_is_no_difference_but_of_a_fix() -> None:
    rows = "## DDP419 it\n| {kind} | {verdict} | Destroy it. | {seen} |\n"
    seen = {"reproduced": "recognised: rank 1", "not reproduced": "in 0 of 40 launches: all well"}
    for kind, expected in (("broken", 0), ("fix", 1)):
        one, other = (
            verdicts(rows.format(kind=kind, verdict=verdict, seen=what))
            for verdict, what in seen.items()
        )
        assert len(differences(one, other)) == expected
