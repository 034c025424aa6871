"""Where a loop is over for one of two stacks, and where that cannot be said."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpdoctor.annotate.rounds import is_left_by_a_lap, left_by_others

SOURCE = """\
def train(agent):
    if agent.ready:
        while agent.steps < 800:
            agent.play()
            agent.update()
        report()
    else:
        alone()
    leave()

def main():
    while True:
        train(make())
        train(make())
"""


@pytest.mark.parametrize(
    ("mine", "theirs", "loop"),
    [
        ((13, 5), (13, 6), 3),
        ((13, 4), (13, 9), None),  # who came there another way was never in the loop
        ((13, 5), (13, 4), None),
        ((13, 6), (13, 5), None),
        ((13, 5), (13, 8), None),
        ((13, 5), (14, 6), None),  # two calls
        ((13, 5), (14,), None),
    ],
)
def test_a_loop_is_over_for_who_stands_behind_it_in_the_same_call(
    tmp_path: Path, mine: tuple[int, ...], theirs: tuple[int, ...], loop: int | None
) -> None:
    file = tmp_path / "train.py"
    file.write_text(SOURCE)
    stacks = ([(str(file), line) for line in lines] for lines in (mine, theirs))
    found = left_by_others(*stacks)
    assert (found and found[1].lineno) == loop


LAPS = """\
def gather(parts):
    for part in {parts}:
        dist.all_gather(part.all, part)

def main(model, parts, rows):
    train = {made}
    {round}:
        for x in train:
            model(x).mean().backward()
        gather(parts)
"""


@pytest.mark.parametrize(
    ("made", "round_", "parts", "line"),
    [
        ("DataLoader(rows)", "for epoch in range(3)", "getattr(self, 'parts')", 2),
        ("read(rows)", "for epoch in range(3)", "getattr(self, 'parts')", None),
        ("DataLoader(rows)", "if rows", "getattr(self, 'parts')", None),
        ("DataLoader(rows)", "for epoch in range(3)", "(parts, rows)", None),
    ],
)
def test_who_is_a_lap_ahead_has_left_another_loop_than_that_over_the_loader(
    tmp_path: Path, made: str, round_: str, parts: str, line: int | None
) -> None:
    file = tmp_path / "train.py"
    file.write_text(LAPS.format(made=made, round=round_, parts=parts))
    mine, theirs = [(str(file), 9)], [(str(file), 10), (str(file), 3)]
    path, loop = left_by_others(mine, theirs) or ("", None)
    assert loop is not None
    found = is_left_by_a_lap(path, loop, theirs)
    assert (found and found[1].lineno) == line
