"""What lint says of scripts by people who had not read this project: nothing that it found is lost.

Of each set `strangers.json` names the bugs that lint does not find with their line, and what it
says of correct scripts: each was read, and is a lesser fault that is there (a step of accumulation
that synchronises, a save in place), or depends on how many ranks there are. It only
shrinks, but for a lesser fault that lint has learnt to see.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.strangers.__main__ import SETS
from benchmarks.strangers.scoring import outcomes
from tests.thorough import one_in

KNOWN = json.loads(Path(__file__).with_name("strangers.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", one_in(12, (each.name for each in SETS)))
def test_nothing_that_was_found_is_lost_and_no_other_correct_script_accused(name: str) -> None:
    folder = next(each for each in SETS if each.name == name)
    told = list(outcomes(folder, [], "", by_lint=True))
    missed = {each.name for each in told if each.kind == "buggy" and each.verdict != "ok"}
    accused = {
        f"{each.kind} {each.name} {finding['code']}"
        for each in told
        for finding in each.graver
        if each.kind != "buggy"
    }
    assert missed <= {*KNOWN[folder.name]["missed"]}
    assert accused <= {*KNOWN[folder.name]["accused"]}


def test_every_set_is_known() -> None:
    assert {folder.name for folder in SETS} == {*KNOWN}
