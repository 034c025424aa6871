"""What lint says of random programs, beside what their ranks really do."""

import pytest

from ddpdoctor import api
from ddpdoctor.catalog import Finding
from tests.lint.differential.performing import of_all
from tests.lint.differential.programs import program
from tests.thorough import one_in

FIRST, PARTS, OF_EACH = 300, 8, 60
_MISSED_AT_MOST = 0.05
"""Of the programs whose ranks part: what is joined again loses what it was on each of them."""


def found(source: str) -> list[Finding]:
    return [each for each in api.lint(text=source) if each.code.startswith("DDP4")]


@pytest.mark.parametrize("part", one_in(2, range(PARTS)))
def test_ranks_that_go_the_same_way_are_never_certainly_accused(part: int) -> None:
    same = 0
    for seed in range(FIRST + part * OF_EACH, FIRST + (part + 1) * OF_EACH):
        ranks = of_all(source := program(seed))
        if ranks is None or any(each != ranks[0] for each in ranks):
            continue
        same += 1
        told = [each for each in found(source) if each.certainty == "certain"]
        assert not told, f"{told[0].cause}\n\n{source}"
    assert same > OF_EACH // 10


def test_ranks_that_part_are_told() -> None:
    parted: list[int] = []
    missed: list[int] = []
    behind = FIRST + PARTS * OF_EACH
    for seed in range(behind, behind + 4 * OF_EACH):
        ranks = of_all(source := program(seed))
        names = [[call.name for call in rank] for rank in ranks or []]
        if any(each != names[0] for each in names):
            parted.append(seed)
            if not found(source):
                missed.append(seed)
    assert len(parted) > OF_EACH
    assert len(missed) <= _MISSED_AT_MOST * len(parted), missed
