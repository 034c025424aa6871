"""Whole scripts as people write them, each buggy one with its clean twin."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ddpdoctor.lint.files import collect
from ddpdoctor.lint.linter import lint
from tests.lint.test_samples import SAMPLES, expected

PROJECTS = SAMPLES / "projects"


@pytest.mark.parametrize("name", sorted(each.name for each in PROJECTS.iterdir()))
def test_a_script_yields_the_marked_lines_and_no_others(name: str, tmp_path: Path) -> None:
    target = tmp_path / name
    if (PROJECTS / name).is_dir():
        shutil.copytree(PROJECTS / name, target)
    else:
        shutil.copy(PROJECTS / name, target)
    result = lint(list(collect([str(target)])))
    found = {(Path(each.path).name, each.line, each.code) for each in result.diagnostics}
    files = target.glob("*.py") if target.is_dir() else [target]
    marked = {(file.name, *mark) for file in files for mark in expected(file)}
    assert found == marked
    assert bool(marked) == ("bad" in name)
