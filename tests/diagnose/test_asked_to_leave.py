"""Ranks that are asked to end while others still want to communicate with them."""

import pytest

from ddpdoctor.diagnose import diagnose
from ddpdoctor.evidence import Evidence, Fate
from tests.diagnose.test_left_without_words import LAST, ranks

LOST = "Read error [10.7.0.1]:18842: Connection reset by peer"


def asked(at: float = 4.0, number: int = 15) -> Evidence:
    return ranks(LOST, Fate(1, 2, None, number, at))


def test_the_rank_that_was_asked_is_named_and_not_those_that_lost_it() -> None:
    (finding,) = diagnose(asked())
    assert (finding.title, finding.ranks, finding.place) == ("asked-to-end", (1,), LAST)
    assert finding.severity == "error"
    assert "rank 1 was asked to end, by SIGTERM" in finding.cause
    assert finding.consequences == ("rank 0 then raised RuntimeError at train.py:9",)


def test_where_the_launcher_then_starts_the_ranks_again_it_is_a_note() -> None:
    evidence = asked()
    evidence.restarted = True
    (finding,) = diagnose(evidence)
    assert (finding.title, finding.severity) == ("asked-to-end", "info")


@pytest.mark.parametrize(
    "evidence",
    [
        asked(at=7.0),  # long after the other had lost somebody: it was ended for that
        asked(at=5.5),  # when the other had ended: their launcher may have ended it for that
        asked(number=9),
        ranks("bad sample", Fate(1, 2, None, 15, 4.0)),
        ranks(LOST, Fate(1, 2, None, 15, 4.0, killed_by_us=True)),
    ],
)
def test_what_went_wrong_otherwise_has_another_name(evidence: Evidence) -> None:
    assert "asked-to-end" not in [finding.title for finding in diagnose(evidence)]


def test_a_job_that_is_asked_to_end_as_a_whole_is_not_spoken_of() -> None:
    evidence = asked()
    evidence.asked_to_end = True
    assert "asked-to-end" not in [finding.title for finding in diagnose(evidence)]
