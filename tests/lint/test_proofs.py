"""What `check` reads off a reproducer's source, by the reference report, lint finds there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import torch

from ddpdoctor.lint.linter import lint

ROOT = Path(__file__).parents[2]
REFERENCE = (ROOT / "reports" / "reference" / "gloo-4-ranks.md").read_text().replace("\\", "")
HEADING = re.compile(r"^## (DDP\d{3}) ", re.M)
READ_OFF = re.compile(r"recognised: read off (\w+\.py):(\d+): (.*?) \|")


def read_off() -> list[tuple[str, str, int]]:
    """Code, file and line of each finding that the report took from the source."""
    pieces = HEADING.split(REFERENCE)
    return [
        (code, found[1], int(found[2]))
        for code, text in zip(pieces[1::2], pieces[2::2], strict=True)
        for found in READ_OFF.finditer(text)
    ]


def test_the_report_has_such_findings() -> None:
    assert len(read_off()) > 10


@pytest.mark.parametrize(("code", "name", "line"), read_off())
def test_lint_finds_what_was_read_off_the_source(code: str, name: str, line: int) -> None:
    found = {
        (each.code, each.line) for each in lint([str(ROOT / "reproducers" / name)]).diagnostics
    }
    assert (code, line) in found


@pytest.mark.thorough
def test_it_finds_the_same_where_the_wheel_has_put_them(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()  # of the project in whose folder the environment lies
    package = tmp_path / ".venv" / "site-packages" / "ddpdoctor"
    shutil.copytree(ROOT / "ddpdoctor", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "reproducers", package / "reproducers")
    (package.parent / "torch").symlink_to(Path(torch.__file__).parent)
    result = lint([str(package / "reproducers" / name) for _, name, _ in read_off()])
    found = {(each.code, Path(each.path).name, each.line) for each in result.diagnostics}
    assert set(read_off()) <= found
