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
    evidence.exit_code = 1
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


def test_another_may_have_been_ended_for_it_unseen() -> None:
    evidence = ranks("", Fate(1, 2, 3, None, 4.0))
    evidence.ranks[0].exceptions.clear()
    unseen(evidence.ranks[0], 4.1)
    evidence.exit_code = 3
    assert [(f.ranks, f.certainty) for f in diagnose(evidence)] == [((1,), "proven")]


ALL_MEAN_IT = [Fate(0, 1, 3, None, 4.0), Fate(1, 2, 3, None, 4.0)]
ASKED_TO_END = [Fate(0, 1, 143, None, 4.0), Fate(1, 2, None, 15, 4.0, killed_by_us=True)]
AFTER_ONE_THAT_FAILED = [Fate(0, 1, None, 15, 3.0), Fate(1, 2, None, None, 4.0)]
AND_WELL_ALL_THE_SAME = [Fate(0, 1, None, 15, 4.1, killed_by_us=True), Fate(1, 2, 3, None, 4.0)]


@pytest.mark.parametrize(
    ("fates", "exit_code"),
    [
        (ALL_MEAN_IT, 1),
        (ASKED_TO_END, 1),
        (AFTER_ONE_THAT_FAILED, 137),
        (AND_WELL_ALL_THE_SAME, 0),
    ],
)
def test_an_exit_code_by_which_nobody_suffered_may_be_meant(
    fates: list[Fate], exit_code: int
) -> None:
    evidence = ranks("", fates[1])
    evidence.ranks[0].exceptions.clear()
    evidence.ranks[0].fate = fates[0]
    evidence.exit_code = exit_code
    assert diagnose(evidence) == []


@pytest.mark.parametrize("ending", ["left", "exiting"])
def test_a_rank_that_was_ended_while_it_came_to_its_end_has_not_suffered(ending: str) -> None:
    evidence = ranks("", Fate(1, 2, 3, None, 4.0))
    evidence.ranks[0].exceptions.clear()
    evidence.ranks[0].fate = Fate(0, 1, None, 15, 4.1, killed_by_us=True)
    setattr(evidence.ranks[0], ending, 3.9)
    evidence.exit_code = 1
    assert diagnose(evidence) == []


@pytest.mark.parametrize(
    "message",
    [
        "bad sample",
        "Expected to have finished reduction in the prior iteration before starting a new one.",
        'Error(s) in loading state_dict for Net: Missing key(s) in state_dict: "module.a.weight".',
    ],
)
@pytest.mark.parametrize("end", [Fate(1, 2, 3, None, 6.0), Fate(1, 2, None, None, 6.0)])
def test_who_was_ended_for_a_failure_that_has_a_name_is_none_beside_it(
    message: str, end: Fate
) -> None:
    evidence = ranks(message, end)
    evidence.exit_code = 137
    assert "left-without-words" not in [finding.title for finding in diagnose(evidence)]


@pytest.mark.parametrize("code", [1, 143])
def test_a_handler_of_the_launchers_sigterm_is_not_named_beside_the_one_that_left(
    code: int,
) -> None:
    evidence = ranks("", Fate(1, 2, 3, None, 4.0))
    evidence.ranks[0].exceptions.clear()
    evidence.ranks[0].fate = Fate(0, 1, code, None, 4.1)
    evidence.ranks.append(RankEvidence(2, 3, pid=3))
    evidence.ranks[2].fate = Fate(2, 3, None, 15, 4.2, killed_by_us=True)
    evidence.exit_code = 1
    assert [finding.ranks for finding in diagnose(evidence)] == [(1,)]


def test_a_log_without_times_is_no_fault_of_ours() -> None:
    evidence = ranks("Connection closed by peer", Fate(1, 2, 0, None, 0.0))
    evidence.ranks[0].exceptions[0] = ExceptionRecord(
        "RuntimeError", "Connection closed by peer", (WAIT,), 0.0, WAIT
    )
    (finding,) = diagnose(evidence)
    assert finding.ranks == (1,)
