"""Ranks that leave and say nothing."""

import pytest

from ddpdoctor.diagnose import diagnose
from ddpdoctor.evidence import Collective, Evidence, ExceptionRecord, Fate, Place, RankEvidence

LAST = Place("/home/u/train.py", 5, "step")
WAIT = Place("/home/u/train.py", 9, "step")


def ranks(message: str, fate: Fate) -> Evidence:
    """Rank 0 raised; rank 1 ended so."""
    raised, ended = RankEvidence(0, 2, pid=1), RankEvidence(1, 2, pid=2)
    raised.exceptions = [ExceptionRecord("RuntimeError", message, (WAIT,), 5.0, WAIT)]
    raised.fate = Fate(0, 1, 1, None, 5.1)
    ended.collectives = [Collective("0", 1, "all_reduce", 3.0, place=LAST)]
    ended.fate = fate
    return Evidence(2, [raised, ended])


def test_the_rank_that_left_is_named_and_not_the_one_that_lost_it() -> None:
    (finding,) = diagnose(ranks("Connection closed by peer", Fate(1, 2, 3, None, 4.0)))
    assert (finding.title, finding.ranks, finding.place) == ("left-without-words", (1,), LAST)
    assert finding.consequences == ("rank 0 then raised RuntimeError at train.py:9",)


@pytest.mark.parametrize(
    ("message", "fate"),
    [
        ("bad sample", Fate(1, 2, 3, None, 6.0)),
        ("Connection closed by peer", Fate(1, 2, 0, None, 4.0)),
        ("Connection closed by peer", Fate(1, 2, None, 11, 4.0)),
        ("Connection closed by peer", Fate(1, 2, 1, None, 6.0, killed_by_us=True)),
    ],
)
def test_a_rank_that_raised_died_or_was_ended_has_another_name(message: str, fate: Fate) -> None:
    titles = [finding.title for finding in diagnose(ranks(message, fate))]
    assert "left-without-words" not in titles
