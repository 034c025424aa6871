"""What `ddpdoctor run` says of public training codebases: healthy, and with a bug put into each.

    python -m benchmarks.repositories --root FOLDER [--only NAME...] [--bug NAME...]

FOLDER has one folder for each repository, named OWNER+NAME, with its files at the commit that
`cases/` names (see `benchmarks.census`). A case says what it needs beside torch, how it is made to
run on two ranks of gloo with small generated data, which of its own defects a healthy run shows,
and a few bugs in its author's style: edits of a few lines, by their numbers. The line to blame
carries a mark; a hit has the right code, and names a line of that statement or at most two off.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.strangers.scoring import Outcome, accepted, run, told

CASES = Path(__file__).parent / "cases"
MARK = "# BUG"


@dataclass(frozen=True)
class Edit:
    """Some lines of a file that are replaced."""

    file: str
    line: int
    """From 1: the first that goes, or before which others come."""
    drop: int
    put: str


@dataclass(frozen=True)
class Case:
    """One repository."""

    folder: str
    commit: str
    launch: str
    setup: tuple[str, ...]
    make: dict[str, str]
    """Files that are added, with what is in them."""
    healthy: tuple[Edit, ...]
    known: frozenset[str]
    """Codes of the defects that its authors have left in it."""
    bugs: dict[str, tuple[frozenset[str], tuple[Edit, ...]]]
    """By name: the codes that are right, and what is changed in the healthy files."""

    @classmethod
    def read(cls, file: Path) -> Case:
        """As `cases/` says it."""
        said = yaml.safe_load(file.read_text("utf-8"))
        bugs = {
            name: (frozenset(bug["codes"].split()), _edits(bug["edits"]))
            for name, bug in said["bugs"].items()
        }
        return cls(
            folder=said["folder"],
            commit=said["commit"],
            launch=said["launch"],
            setup=tuple(said.get("setup", ())),
            make=said.get("make", {}),
            healthy=_edits(said["healthy"]),
            known=frozenset(said.get("known", "").split()),
            bugs=bugs,
        )

    def prepare(self, source: Path, work: Path, bug: str) -> None:
        """A copy that runs here, with this bug; "" is none."""
        left = shutil.ignore_patterns(".git")
        shutil.copytree(source, work, ignore=left, ignore_dangling_symlinks=True)
        for name, text in self.make.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(text, "utf-8")
        _apply(work, self.healthy)
        _apply(work, self.bugs[bug][1] if bug else ())
        for line in self.setup:
            subprocess.run([sys.executable, *shlex.split(line)], cwd=work, check=True)


def _edits(said: Sequence[dict[str, Any]]) -> tuple[Edit, ...]:
    return tuple(Edit(**each) for each in said)


def _apply(work: Path, edits: Sequence[Edit]) -> None:
    """All of them, by the numbers that the lines had before the first."""
    for edit in sorted(edits, key=lambda each: -each.line):
        file = work / edit.file
        lines = file.read_text("utf-8").splitlines(keepends=True)
        lines[edit.line - 1 : edit.line - 1 + edit.drop] = [edit.put]
        file.write_text("".join(lines), "utf-8")


def _marked(work: Path) -> Iterator[tuple[Path, int]]:
    for file in work.rglob("*.py"):
        for number, line in enumerate(file.read_text("utf-8", "replace").splitlines(), 1):
            if MARK in line:
                yield file, number


def outcome(case: Case, source: Path, bug: str) -> Outcome:
    """One run."""
    with tempfile.TemporaryDirectory(prefix="repository-") as home:
        work = Path(home) / case.folder
        case.prepare(source, work, bug)
        findings, code = run(shlex.split(case.launch), work)
        marks = list(_marked(work))
        if not bug:
            findings = [each for each in findings if each["code"] not in case.known]
            return Outcome("healthy", case.folder, findings, exit_code=code)
        ((file, line),) = marks
        lines = accepted(file.read_text("utf-8"), [line])
        name = f"{case.folder} {bug}"
        return Outcome("buggy", name, findings, case.bugs[bug][0], file.name, lines, code)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", required=True, type=Path, help="the repositories' folders")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of repositories' names")
    parser.add_argument("--bug", nargs="+", help="these alone")
    options = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = []
    for case in map(Case.read, sorted(CASES.glob("*.yaml"))):
        source = (options.root / case.folder).absolute()
        if not source.is_dir() or not any(part in case.folder for part in options.only):
            continue
        for bug in options.bug or ("", *case.bugs):
            found.append(outcome(case, source, bug))
            print(told(found[-1], verbose=False), flush=True)
    sick = [each for each in found if each.kind == "buggy"]
    well = [each for each in found if each.kind != "buggy"]
    wrong = [f for each in sick for f in each.graver if f["certainty"] == "proven"]
    wrong = [f for f in wrong if not any(f in each.right for each in sick)]
    print(
        f"{sum(each.has_line for each in sick)} of {len(sick)} with the right cause and line, "
        f"{sum(each.has_cause for each in sick)} with the right cause, {len(wrong)} others called "
        f"proven; {sum(bool(each.graver) for each in well)} of {len(well)} healthy ones accused"
    )


if __name__ == "__main__":
    main()
