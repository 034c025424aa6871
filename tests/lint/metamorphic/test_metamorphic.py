"""The findings on our own patients and samples stay when their names and shapes change."""

from __future__ import annotations

import ast
import json
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from ddpdoctor.launch import ForkServer
from tests.lint.metamorphic.program import Program, text
from tests.lint.metamorphic.scoring import score, told_otherwise
from tests.lint.metamorphic.subjects import Subject, subjects
from tests.lint.metamorphic.transformations import Transform, all_transformations
from tests.patients.patient import patients
from tests.patients.ward import Ward
from tests.thorough import one_in

LOST = json.loads(Path(__file__).with_name("lost.json").read_text(encoding="utf-8"))
WAYS = all_transformations()
TOGETHER = {
    "moved_in_parts": ("tupled", "in_an_object", "aliased", "moved"),
    "written_anew": ("pulled_up", "paired", "swapped", "decorated", "renamed"),
    "spread_out": ("extracted", "imported_otherwise", "configured_by_class"),
    "set_by_bases": ("based", "configured"),
}
"""Ways that are gone one behind the other, as code out there goes them. A program goes one of these
turns, by its name; the command goes each way alone, and printing, as all of them print."""
PARTS = 40
"""What is found in a program before is asked once for all ways, by whoever has its part."""
# One with a class, files and a resume; one whose bug only shows where ranks part.
PERFORMED = ("correct/checkpoint_shards_and_resume", "patience_of_each_rank/buggy")


@pytest.mark.parametrize("part", one_in(16, range(PARTS)))
def test_a_program_told_otherwise_gets_the_same_findings(part: int) -> None:
    chosen = subjects()[part::PARTS]
    for number, (name, ways) in enumerate(TOGETHER.items()):
        turns = [each for each in chosen if _goes(each) == number]
        one = score(_gone_one_by_one(ways), turns)
        assert not set(one.lost) - set(LOST[name]).union(*(LOST[way] for way in ways)), name
        assert not one.accused, name
        assert not one.noise, name


def _goes(subject: Subject) -> int:
    return zlib.crc32(subject.name.encode()) % len(TOGETHER)


def _gone_one_by_one(ways: tuple[str, ...]) -> Transform:
    """What changes a program in each of `ways`."""

    def transform(program: Program) -> None:
        for way in ways:
            WAYS[way](program)

    return transform


def test_every_transformation_is_tried_and_has_a_sentence() -> None:
    assert set(LOST) == {*WAYS, *TOGETHER}
    assert {way for ways in TOGETHER.values() for way in ways} == {*WAYS} - {"reprinted"}
    for name, transform in WAYS.items():
        module = __import__(transform.__module__, fromlist=["transform"])
        assert (module.__doc__ or "").count("\n\n") <= 1, name
        assert (module.__doc__ or "").strip(), name


@pytest.fixture(scope="module")
def forked(server: ForkServer) -> Ward:
    return Ward(server, really=False)


@pytest.mark.parametrize("name", one_in(4, WAYS))
def test_a_program_told_otherwise_does_the_same(name: str, forked: Ward, tmp_path: Path) -> None:
    for patient in patients(PERFORMED):
        program = Program.read({"train.py": patient.script.read_text("utf-8")}, "train.py")
        new = told_otherwise(program, WAYS[name]) or text(program)
        folder = tmp_path / patient.script.parent.name
        folder.mkdir()
        for file, source in new.files.items():
            (folder / file).write_text(source, encoding="utf-8")
        told = forked.score(replace(patient, script=folder / "train.py")).findings
        wrong = {each.code for each in told if each.severity != "info"}
        assert wrong == {code for code, _ in patient.marks}, told


@pytest.fixture(scope="module")
def chosen() -> list[Subject]:
    return subjects()[::12]


@pytest.mark.parametrize("name", one_in(4, WAYS))
def test_what_is_told_otherwise_compiles_and_knows_its_lines(
    name: str, chosen: list[Subject]
) -> None:
    changed = 0
    for subject in chosen:
        new = told_otherwise(subject.program, WAYS[name])
        if new is None:
            continue
        changed += 1
        for file, source in new.files.items():
            compile(source, file, "exec")
        known = set().union(*new.origins.values())
        for file, tree in subject.program.files.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.Assign | ast.Return | ast.For | ast.While | ast.If):
                    assert (file, node.lineno) in known, (subject.name, ast.unparse(node))
    assert changed > 6
