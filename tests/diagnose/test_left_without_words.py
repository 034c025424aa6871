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


def unseen(rank: RankEvidence, at: float) -> None:
    """It ended, and its parent reaped it before anybody else saw how."""
    rank.fate = Fate(rank.rank, rank.pid, None, None, at)


def test_ranks_that_were_ended_for_one_that_left_need_not_have_raised() -> None:
    evidence = ranks("", Fate(1, 2, 3, None, 4.0))
    evidence.ranks[0].exceptions.clear()
    evidence.ranks[0].fate = Fate(0, 1, None, 15, 4.1, killed_by_us=True)
    (finding,) = diagnose(evidence)
    assert (finding.title, finding.ranks, finding.place) == ("left-without-words", (1,), LAST)


def test_the_first_of_those_whose_end_nobody_saw_is_named() -> None:
    evidence = ranks("", Fate(1, 2, None, None, 4.0))
    evidence.ranks[0].exceptions.clear()
    unseen(evidence.ranks[0], 4.01)
    evidence.exit_code = 137
    (finding,) = diagnose(evidence)
    assert (finding.title, finding.ranks, finding.place) == ("left-without-words", (1,), LAST)
    assert finding.certainty == "evidence"
    assert "exit code 137, which stands for SIGKILL" in finding.cause


def test_it_is_named_before_those_that_lost_it() -> None:
    evidence = ranks("Connection closed by peer", Fate(1, 2, None, None, 4.0))
    (finding,) = diagnose(evidence)
    assert (finding.title, finding.ranks) == ("left-without-words", (1,))
    assert finding.consequences == ("rank 0 then raised RuntimeError at train.py:9",)


@pytest.mark.parametrize("exit_code", [0, None])
def test_an_end_that_nobody_saw_is_no_failure_of_a_command_that_ended_well(
    exit_code: int | None,
) -> None:
    evidence = ranks("", Fate(1, 2, None, None, 4.0))
    evidence.ranks[0].exceptions.clear()
    unseen(evidence.ranks[0], 4.01)
    evidence.exit_code = exit_code
    assert diagnose(evidence) == []


def test_a_rank_that_raised_is_named_and_not_those_that_were_ended_for_it_unseen() -> None:
    evidence = ranks("bad sample", Fate(1, 2, None, None, 6.0))
    evidence.exit_code = 1
    assert [(each.title, each.ranks) for each in diagnose(evidence)] == [
        ("exception-before-init", (0,))
    ]


def test_a_rank_that_came_to_its_end_is_not_named() -> None:
    evidence = ranks("", Fate(1, 2, None, None, 4.0))
    evidence.ranks[0].exceptions.clear()
    unseen(evidence.ranks[0], 4.01)
    for rank in evidence.ranks:
        rank.exiting = 3.9
    evidence.exit_code = 1
    assert diagnose(evidence) == []
