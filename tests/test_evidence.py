"""Each kind of event has one place: what is written is known, and what is known is written."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.diagnose.detecting import detectors
from ddpdoctor.diagnose.detectors import DETECTORS
from ddpdoctor.evidence import KINDS

WATCH = Path(__file__).parent.parent / "ddpdoctor" / "watch"
HEADS = {"start", "anew"}
"""The log writes these by itself."""


def written() -> Iterator[str]:
    """The kinds that the watch gives to a log."""
    for file in WATCH.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="write"), args=[ast.Constant(value=str(kind)), *_]
                ):
                    yield kind


def test_every_event_that_is_written_is_known() -> None:
    assert set(written()) - set(KINDS) == set()


def test_every_event_that_is_known_is_written() -> None:
    assert set(KINDS) - HEADS - set(written()) == set()


def test_every_file_of_the_detectors_is_asked() -> None:
    folder = Path(inspect.unwrap(DETECTORS[0]).__code__.co_filename).parent
    asked = {Path(inspect.unwrap(each).__code__.co_filename).name for each in detectors()}
    helpers = {"__init__.py", "messages.py"}
    assert {path.name for path in folder.glob("*.py")} - asked == helpers
