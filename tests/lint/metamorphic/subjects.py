"""The programs that are told otherwise: our patients and the samples of lint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
    program: Program
    bugs: tuple[Marked, ...]
    """Each is found if one of its marks is."""
    path: Path
    """Where it comes from: a script, or a folder."""

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
            program = Program.read({each.script.name: _text(each.script)}, each.script.name)
            yield Subject(f"patients/{each.name}", program, (marks,) if marks else (), each.script)


def _samples() -> Iterator[Subject]:
    for path in sorted(SAMPLES.glob("*.py")):
        yield _marked(f"samples/{path.stem}", [path], path)


def _projects() -> Iterator[Subject]:
    for path in sorted((SAMPLES / "projects").iterdir()):
        files = sorted(path.glob("*.py")) if path.is_dir() else [path]
        yield _marked(f"samples/projects/{path.stem}", files, path)


def _marked(name: str, files: list[Path], path: Path) -> Subject:
    bugs = tuple(
        frozenset({(code, (file.name, line))})
        for file in files
        for line, code in sorted(expected(file))
    )
    entry = next((each.name for each in files if each.stem == "train"), files[0].name)
    texts = {each.name: _text(each) for each in files}
    return Subject(name, Program.read(texts, entry), bugs, path)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
