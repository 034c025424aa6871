"""Where a loop is over for one of two stacks, and where that cannot be said."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpdoctor.annotate.rounds import left_by_others

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
