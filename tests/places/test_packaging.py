"""What is installed, with what, and what of it stays as it was."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from ddpdoctor import cli, manual

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CORE = ["PyYAML", "psutil", "pydantic", "rich", "typer"]
"""To add one is a decision: each user of the doctor gets it, next to the torch that trains."""


def test_the_core_depends_on_these_alone() -> None:
    names = [each.partition(">=")[0] for each in PROJECT["dependencies"]]
    assert sorted(names) == CORE
    assert all(">=" in each and "<" not in each for each in PROJECT["dependencies"]), (
        "no upper pins"
    )


def test_nothing_that_trains_is_ever_installed_with_the_core() -> None:
    assert not {"torch", "numpy"} & {each.partition(">=")[0] for each in PROJECT["dependencies"]}


def test_the_changelog_has_this_version() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert f"\n## {PROJECT['version']}" in changes


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.run(["completion", shell]) == 0
    assert "_DDPDOCTOR_COMPLETE" in capsys.readouterr().out


def test_a_shell_is_told_the_commands_that_begin_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "_DDPDOCTOR_COMPLETE": "complete_bash",
        "COMP_WORDS": "ddpdoctor di",
        "COMP_CWORD": "1",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        cli.main()
    assert capsys.readouterr().out.split() == ["diagnose"]


def test_the_manual_page_tells_every_command_and_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["manual"]) == 0
    page = capsys.readouterr().out
    assert page.startswith(".TH DDPDOCTOR 1 ")
    for command in manual.commands():
        assert f"ddpdoctor {command.name}" in page
        for option in command.options:
            assert option.flags.replace("-", r"\-") in page
    meant = (".TH", ".SH", ".SS", ".PP", ".TP", ".B")
    odd = [line for line in page.splitlines() if line.startswith((".", "'"))]
    assert [line for line in odd if not line.startswith(meant)] == []
