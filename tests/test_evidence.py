"""Each kind of event has one place: what is written is known, and what is known is written."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddpdoctor.diagnose.detecting import detectors
from ddpdoctor.diagnose.detectors import DETECTORS
from ddpdoctor.evidence import KINDS, RankReader, spans

WATCH = Path(__file__).parent.parent / "ddpdoctor" / "watch"
HEADS = {"start", "anew"}
"""The log writes these by itself."""


def written() -> Iterator[str]:
    """The kinds that the watch gives to a log."""
    for file in WATCH.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="write" | "write_later"),
                    args=[ast.Constant(value=str(kind)), *_],
                ):
                    yield kind


def test_every_event_that_is_written_is_known() -> None:
    assert set(written()) - set(KINDS) == set()


def test_every_event_that_is_known_is_written() -> None:
    assert set(KINDS) - HEADS - set(written()) == set()


@pytest.mark.parametrize(
    "ranks", [[0], [*range(8)], [*range(100)], [*range(3, 90, 7)], [*range(50), 99], [5, 3, 1] * 5]
)
def test_the_ranks_of_a_group_are_read_as_they_were_written(ranks: list[int]) -> None:
    said = {"k": "group", "t": 1.0, "name": "g", "ranks": spans(ranks), "backend": "gloo"}
    line = json.dumps({**said, "timeout": 1.0, "place": ["train.py", 7, "main"]}).encode()
    readers = [RankReader(Path(), rank, 100) for rank in (0, 1)]
    for reader in readers:
        reader.take([line])
        assert reader.evidence.groups["g"].ranks == tuple(ranks)
    beyond = RankReader(Path(), 0, max(ranks))
    beyond.take([line])
    assert (beyond.unreadable, beyond.evidence.groups) == (1, {})
    is_short = isinstance(spans(ranks), dict)
    assert is_short == (ranks in ([*range(100)], [*range(3, 90, 7)]))
    one, other = (reader.evidence.groups["g"] for reader in readers)
    assert (one is other) == is_short


@pytest.mark.parametrize(
    "said",
    [
        *({"first": 0, "last": 9, "step": 0}, {"first": 9, "last": 0, "step": 1}, {"first": 0}),
        *({"first": -1, "last": 9, "step": 1}, {"first": 0.5, "last": 9, "step": 1}, {}, 7, "0123"),
    ],
)
def test_ranks_that_are_none_are_no_group(said: object) -> None:
    reader = RankReader(Path(), 0, 100)
    event = {"k": "group", "t": 1.0, "name": "g", "ranks": said, "backend": "gloo"}
    reader.take([json.dumps({**event, "timeout": 1.0, "place": None}).encode()])
    assert (reader.unreadable, reader.evidence.groups) == (1, {})


def test_every_file_of_the_detectors_is_asked() -> None:
    folder = Path(inspect.unwrap(DETECTORS[0]).__code__.co_filename).parent
    asked = {Path(inspect.unwrap(each).__code__.co_filename).name for each in detectors()}
    helpers = {"__init__.py", "messages.py"}
    assert {path.name for path in folder.glob("*.py")} - asked == helpers
