"""What is installed, with what, and what of it stays as it was."""

from __future__ import annotations

import subprocess
import sys
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


THEIRS = {
    "torch": "2.6.0+theirs",
    "numpy": "1.26.4",
    "triton": "3.2.0",
    "nvidia-nccl-cu12": "2.21.5",
}
"""What somebody trains with, in place of which pip would find newer ones."""


def have(folder: Path, name: str, version: str) -> None:
    """Let a distribution of one module be installed in a folder, as pip would have left it."""
    module = folder / name.replace("-", "_") / "__init__.py"
    about = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    module.parent.mkdir()
    about.mkdir()
    module.write_text(f"__version__ = {version!r}\n")
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (about / "INSTALLER").write_text("pip\n")
    files = (module, about / "METADATA", about / "INSTALLER", about / "RECORD")
    (about / "RECORD").write_text("".join(f"{f.relative_to(folder)},,\n" for f in files))


def contents(folder: Path) -> dict[str, bytes]:
    theirs = (f for n in THEIRS for f in folder.glob(f"{n.replace('-', '_')}*/*"))
    return {str(file): file.read_bytes() for file in theirs if file.is_file()}


def test_the_wheel_changes_nothing_that_trains_where_it_is_installed(tmp_path: Path) -> None:
    def pip(*arguments: str) -> None:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        if "No matching distribution found" in done.stderr:
            pytest.skip("there is no registry of packages")
        assert done.returncode == 0, done.stderr

    pip("wheel", "--quiet", "--no-deps", "--wheel-dir", "wheels", str(ROOT))
    (wheel,) = (tmp_path / "wheels").iterdir()
    there = tmp_path / "there"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", there], check=True)
    (packages,) = there.glob("lib/python*/site-packages")
    for name, version in THEIRS.items():
        have(packages, name, version)
    before = contents(packages)
    assert len(before) == 4 * len(THEIRS)
    python = str(there / "bin" / "python")
    pip("--python", python, "install", "--quiet", "-c", str(ROOT / "constraints.txt"), str(wheel))
    assert contents(packages) == before
    told = subprocess.run(
        [there / "bin" / "ddpdoctor", "--version"], capture_output=True, check=True
    )
    assert told.stdout.startswith(b"ddpdoctor ")


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
