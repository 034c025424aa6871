"""Groups that are made again and again and never destroyed are told; groups by design are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose import diagnose
from ddpdoctor.evidence import Evidence, ExceptionRecord, Fate, Group, Place, RankEvidence

LOOP = Place("/home/user/train.py", 10, "evaluate")
INSIDE = Place("/site-packages/torch/distributed/distributed_c10d.py", 1, "new_group")
EVERYONE = (0, 1, 2, 3)


def found(groups: list[Group], dissolved: tuple[str, ...] = (), error: str = "") -> list[Finding]:
    """What is said of four ranks that made these groups."""
    ranks = []
    for number in EVERYONE:
        rank = RankEvidence(number, len(EVERYONE), 100 + number, left=60.0)
        rank.groups = {group.name: group for group in groups}
        rank.dissolved = list(dissolved)
        rank.fate = Fate(number, rank.pid, 1 if error else 0, None, 61.0)
        if error:
            rank.exceptions.append(
                ExceptionRecord("RuntimeError", error, (LOOP, INSIDE), 50.0, LOOP)
            )
        ranks.append(rank)
    return diagnose(Evidence(len(ranks), ranks))


def made(count: int, members: tuple[int, ...] = EVERYONE) -> list[Group]:
    return [Group(str(number), members, "gloo", 1800.0, LOOP) for number in range(1, count + 1)]


def test_many_groups_of_the_same_ranks_from_one_line_are_a_pile() -> None:
    (finding,) = found(made(8))
    assert (finding.code, finding.severity, finding.ranks) == ("DDP411", "warning", EVERYONE)
    assert finding.place == LOOP


def test_a_pile_is_the_cause_where_the_descriptors_ran_out() -> None:
    (finding,) = found(made(200), error="socket: Too many open files")
    assert (finding.code, finding.severity) == ("DDP411", "error")


def test_descriptors_that_ran_out_without_a_pile_are_another_matter() -> None:
    (finding,) = found(made(2), error="socket: Too many open files")
    assert finding.code == "DDP600"


def test_a_few_groups_are_no_pile() -> None:
    assert found(made(7)) == []


def test_groups_that_are_destroyed_one_by_one_are_no_pile() -> None:
    assert found(made(20), dissolved=tuple(map(str, range(1, 20)))) == []


@pytest.mark.parametrize("members", [lambda n: (0, n), lambda n: tuple(range(n % 4 + 1))])
def test_groups_of_different_ranks_from_one_line_are_a_design(members) -> None:  # type: ignore[no-untyped-def]
    assert found([replace(group, ranks=members(int(group.name))) for group in made(16)]) == []
