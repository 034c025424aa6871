"""The programs that are told otherwise: our patients and the samples of lint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.lint.metamorphic.program import Line, Program
from tests.lint.test_patients import NOT_IN_THE_SOURCE
from tests.lint.test_samples import SAMPLES, expected
from tests.patients.patient import patients

Marked = frozenset[tuple[str, Line]]
"""Code and line, each of which tells the bug."""


@dataclass(frozen=True)
class Subject:
    """One program, and what must be found in it."""

    name: str
    bugs: tuple[Marked, ...]
    """Each is found if one of its marks is."""
    files: tuple[Path, ...]

    @cached_property
    def sources(self) -> dict[str, str]:
        """The text of each file."""
        return {each.name: each.read_text(encoding="utf-8") for each in self.files}

    @cached_property
    def program(self) -> Program:
        """What a transformation is given a copy of."""
        entry = next((each.name for each in self.files if each.stem == "train"), self.files[0].name)
        return Program.read(self.sources, entry)

    @property
    def is_clean(self) -> bool:
        return not self.bugs


def subjects(names: tuple[str, ...] = ()) -> list[Subject]:
    """All of them, or those whose name starts with one of `names`."""
    found = [*_patients(), *_samples(), *_projects()]
    return [each for each in found if not names or each.name.startswith(names)]


def _patients() -> Iterator[Subject]:
    for each in patients():
        marks = frozenset((code, (each.script.name, line)) for code, line in each.marks)
        hidden = each.script.parent.name in NOT_IN_THE_SOURCE and marks
        if not hidden:
            yield Subject(f"patients/{each.name}", (marks,) if marks else (), (each.script,))


def _samples() -> Iterator[Subject]:
    for path in sorted(SAMPLES.glob("*.py")):
        yield _marked(f"samples/{path.stem}", path)


def _projects() -> Iterator[Subject]:
    for path in sorted((SAMPLES / "projects").iterdir()):
        files = sorted(path.glob("*.py")) if path.is_dir() else [path]
        yield _marked(f"samples/projects/{path.stem}", *files)


def _marked(name: str, *files: Path) -> Subject:
    bugs = tuple(
        frozenset({(code, (file.name, line))})
        for file in files
        for line, code in sorted(expected(file))
    )
    return Subject(name, bugs, files)
