"""Every sample says on its own lines what must be found there, and nothing else may be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ddpdoctor.lint.linter import lint
from ddpdoctor.lint.rules import HEADINGS, all_rules

SAMPLES = Path(__file__).parent / "samples"
FILES = sorted(path.name for path in SAMPLES.glob("*.py"))


def expected(path: Path, mark: str = "# <-- ") -> set[tuple[int, str]]:
    return {
        (number, code)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if mark in line
        for code in re.findall(r"DDP\d{3}", line.split(mark)[1])
    }


def informed(path: Path) -> set[tuple[int, str]]:
    """What is told as information, and is no accusation: a clean twin may have it."""
    return expected(path, "# <- ")


@pytest.mark.parametrize("name", FILES)
def test_a_sample_yields_the_marked_lines_and_no_others(name: str) -> None:
    # In memory and elsewhere: the other samples must not count as its project.
    path = f"/nowhere/{name}"
    result = lint([path], given={path: (SAMPLES / name).read_bytes()})
    told, harmless = expected(SAMPLES / name), informed(SAMPLES / name)
    assert {(each.line, each.code) for each in result.diagnostics} == told | harmless
    graver = {(each.line, each.code) for each in result.diagnostics if not each.harmless}
    assert told <= graver
    assert graver.isdisjoint(harmless)
    assert not result.troubles


def test_every_rule_has_a_bad_sample_and_a_clean_twin() -> None:
    bad = {name[:6] for name in FILES if name.endswith("_bad.py")}
    clean = {name[:6] for name in FILES if name.endswith("_clean.py")}
    assert {rule.code for rule in all_rules()} == bad
    assert bad <= clean
    twins = {name.replace("_bad.py", "_clean.py") for name in FILES if name.endswith("_bad.py")}
    assert twins <= set(FILES)


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: f"{rule.code}-{rule.name}")
def test_a_rule_documents_itself(rule) -> None:  # type: ignore[no-untyped-def]
    for heading in HEADINGS:
        assert f"## {heading}\n" in rule.documentation
    assert re.fullmatch(r"DDP[1-7]\d\d", rule.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    assert rule.confidence in ("certain", "likely")
