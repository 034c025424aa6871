"""The verdicts on public repositories are whole, and a run of lint is scored right against them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from benchmarks.census import scoring, verdicts
from benchmarks.census.verdicts import Census, Verdict, census, digest
from ddpdoctor.lint.rules import all_rules

IMPORT = "import torch.distributed as dist\n\n\n"
HANG = IMPORT + "def save():\n    if dist.get_rank() == 0:\n        dist.barrier()\n"
FINE = IMPORT + "def save():\n    dist.barrier()\n"


def verdict(**changes: object) -> dict[str, object]:
    whole = {
        "file": "train.py",
        "line": 6,
        "digest": "0" * 8,
        "code": "DDP401",
        "verdict": "true",
        "why": "the others never come",
    }
    return whole | changes


def repository(*places: dict[str, object]) -> Census:
    data = {"repository": "some/one", "commit": "0" * 40, "kind": "vision", "lines": 6}
    return Census(**data, verdicts=tuple(Verdict(**each) for each in places))


def found(**changes: object) -> scoring.Found:
    whole = {
        "folder": "some+one",
        "file": "train.py",
        "line": 6,
        "code": "DDP401",
        "level": "certain",
        "cause": "it stands under a rank's condition",
    }
    return scoring.Found(**(whole | changes))  # type: ignore[arg-type]


def tally(one: Census, *findings: scoring.Found) -> scoring.Tally:
    result = scoring.Tally()
    scoring.add(result, one, findings)
    return result


def test_the_verdicts_are_many_and_each_is_of_a_code_that_lint_can_say() -> None:
    everything = census()
    judged = [each for one in everything for each in one.verdicts]
    reported = {each.code for each in judged if each.verdict != "missed"}
    assert len(everything) >= 60
    assert sum(each.verdict == "missed" for each in judged) >= 130
    assert reported <= {rule.code for rule in all_rules()}
    assert len({one.repository for one in everything}) == len(everything)


@pytest.mark.parametrize("one", census(), ids=lambda one: one.folder)
def test_no_place_of_a_repository_is_judged_twice(one: Census) -> None:
    places = [(each.file, each.line, each.code) for each in one.verdicts]
    twice = {each for each in places if places.count(each) > 1}
    # One listing after the other in one line: two findings.
    assert all(code == "DDP213" for _, _, code in twice)


@pytest.mark.parametrize(
    "wrong",
    [
        {"verdict": "missed"},
        {"needs": "a call", "strength": "always"},
        {"verdict": "perhaps"},
        {"code": "E501"},
        {"line": 0},
        {"source": "dist.barrier()"},
    ],
    ids=lambda wrong: "-".join(wrong),
)
def test_a_verdict_that_is_not_whole_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Verdict(**verdict(**wrong))  # type: ignore[arg-type]


def test_a_finding_is_paired_with_the_nearest_verdict_of_its_code_and_file() -> None:
    one = repository(verdict(line=4, verdict="false"), verdict(line=6))
    result = tally(one, found(line=6), found(line=5))
    assert [(at.line, judged.line) for at, judged in result.pairs] == [(6, 6), (5, 4)]
    assert not result.unread
    assert not result.unseen


@pytest.mark.parametrize("other", [{"line": 9}, {"code": "DDP402"}, {"file": "other.py"}])
def test_a_finding_that_fits_no_verdict_is_unread(other: dict[str, object]) -> None:
    result = tally(repository(verdict()), found(**other))
    assert len(result.unread) == len(result.unseen) == 1
    assert result.precision() is None
    assert result.recall() == 0


def test_precision_is_by_level_and_recall_over_all_known_defects() -> None:
    one = repository(
        verdict(line=10),
        verdict(line=20),
        verdict(line=30, verdict="false"),
        verdict(line=40, verdict="debatable"),
        verdict(line=50, verdict="missed", needs="a call", strength="always"),
        verdict(line=60, verdict="missed", needs="a call", strength="conditional"),
    )
    result = tally(
        one,
        found(line=10),
        found(line=30, level="likely"),
        found(line=40, level="likely"),
        found(line=51, level="likely"),
    )
    assert result.precision("certain") == 1
    assert result.precision("likely") == 1 / 2
    assert result.precision() == 2 / 3
    assert result.recall() == 2 / 4
    assert result.recall_of_missed() == 1 / 2
    assert [each.line for _, each in result.lost("true")] == [20]
    assert any("of 2 once missed 1" in line for line in scoring.table(result))


def test_the_command_scores_a_folder_of_repositories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    (root / "some+one").mkdir(parents=True)
    (root / "some+one" / "train.py").write_text(HANG)
    (root / "some+one" / "fine.py").write_text(FINE)
    places = [
        verdict(digest=digest(root / "some+one" / "train.py", 6)),
        verdict(file="fine.py", line=5, digest="0" * 8, verdict="false"),
    ]
    one = {"repository": "some/one", "commit": "0" * 40, "kind": "vision", "lines": 11}
    shelf = tmp_path / "verdicts"
    shelf.mkdir()
    (shelf / "some+one.yaml").write_text(yaml.safe_dump({**one, "verdicts": places}))
    other = {**one, "repository": "not/there", "verdicts": []}
    (shelf / "not+there.yaml").write_text(yaml.safe_dump(other))
    program = (
        "import sys; from pathlib import Path; from benchmarks.census import __main__, verdicts;"
        f"__main__.census = lambda: verdicts.census(Path({str(shelf)!r}));"
        "sys.exit(__main__.main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "--root", str(root), "--list"],
        cwd=Path(verdicts.__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert "some+one: 1 of 2 lines read otherwise:" in lines
    assert f"not in {root}: not+there" in lines
    assert "certain        1          0      0       0     100.0%" in lines
    assert "true ones lost: 0; false ones gone: 1" in lines
