"""Ranks that were started twice over, and ranks that run different programs, are told as such."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ddpdoctor.diagnose import diagnose
from ddpdoctor.evidence import (
    LOG_NAME,
    Evidence,
    ExceptionRecord,
    Fate,
    Group,
    Place,
    RankEvidence,
    RankReader,
)

JOINS = Place("/home/user/train.py", 36, "worker")


def ranks(count: int = 4) -> list[RankEvidence]:
    group = Group("0", tuple(range(count)), "gloo", 1800.0, JOINS)
    return [
        RankEvidence(
            rank,
            count,
            pid=100 + rank,
            torch="2.13.0",
            groups={"0": group},
            joining=10.0,
            joining_place=JOINS,
            source="a1",
            joined_by={100 + rank},
            fate=Fate(rank, 100 + rank, 0, None, 60.0),
        )
        for rank in range(count)
    ]


def found(several: list[RankEvidence]) -> list[tuple[str, str, tuple[int, ...]]]:
    findings = diagnose(Evidence(len(several), several))
    return [(each.code, each.severity, each.ranks) for each in findings]


def test_ranks_that_run_the_same_are_no_finding() -> None:
    assert found(ranks()) == []
    assert diagnose(Evidence(0, [])) == []


@pytest.mark.parametrize(("what", "version"), [("source", "b2"), ("torch", "2.12.0")])
def test_ranks_that_run_something_else_than_rank_0_are_named(what: str, version: str) -> None:
    four = ranks()
    for rank in four[2:]:
        setattr(rank, what, version)
    assert found(four) == [("DDP110", "warning", (2, 3))]


def test_what_comes_of_different_scripts_is_told_beside_them() -> None:
    four = ranks()
    four[3].source = "b2"
    four[3].fate = Fate(3, 103, 1, None, 60.0)
    message = "params[0] appears not to match sizes of the same param in process 0"
    four[3].exceptions = [ExceptionRecord("RuntimeError", message, (JOINS,), 50.0, JOINS)]
    assert [code for code, _, _ in found(four)] == ["DDP110", "DDP310"]


def test_scripts_of_another_name_and_ranks_that_could_not_be_read_may_differ() -> None:
    four = ranks()
    four[1] = replace(four[1], joining_place=replace(JOINS, file="/home/user/serve.py"), source="b")
    four[2].source = ""
    four[3] = replace(four[3], torch="", joining_place=None, source="c")
    assert found(four) == []


def test_ranks_that_started_ranks_in_their_own_place_are_named_with_the_line() -> None:
    two = ranks(2)
    for rank in two:
        rank.nested, rank.joined_by = JOINS, {1, 2}
    (finding,) = diagnose(Evidence(2, two))
    assert (finding.code, finding.ranks, finding.place) == ("DDP114", (0, 1), JOINS)
    assert "2 call themselves rank 0" in finding.cause


def test_a_rank_that_trains_in_one_child_is_no_finding() -> None:
    two = ranks(2)
    for rank in two:
        rank.nested = JOINS
    assert found(two) == []


def test_a_process_that_joins_in_a_ranks_place_is_remembered_when_the_rank_comes(
    tmp_path: Path,
) -> None:
    def start(pid: int) -> dict[str, object]:
        return {"k": "start", "t": 1.0, "pid": pid, "boot": "", "torch": "2.13", "world_size": 2}

    place = [JOINS.file, JOINS.line, JOINS.function]
    joining = {"k": "joining", "t": 2.0, "place": place, "source": "a1", "nested": True}
    lines = (start(7), joining, start(8), joining, start(6))
    log = tmp_path / LOG_NAME.format(rank=0)
    log.write_text("".join(json.dumps(each) + "\n" for each in lines))
    reader = RankReader(tmp_path, 0, 2)
    reader.poll()
    reader.close()
    assert (reader.evidence.pid, reader.evidence.joined_by) == (6, {7, 8})
    assert reader.evidence.nested == JOINS
