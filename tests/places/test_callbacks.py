"""Callbacks for trainers: each is one of its library's, and begins to watch."""

from __future__ import annotations

import pytest

from ddpdoctor.watch import starting


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was begun to be watched, in place of doing so."""
    calls: list[object] = []
    monkeypatch.setattr(starting, "start", calls.append)
    return calls


def test_lightnings(begun: list[object]) -> None:
    pl = pytest.importorskip("pytorch_lightning")
    from ddpdoctor.callbacks.lightning import Watch

    callback = Watch()
    assert isinstance(callback, pl.Callback)
    callback.setup(None, None, "fit")
    assert begun == [None, None], "where it is made, and in a rank that was spawned"


def test_transformers(begun: list[object]) -> None:
    transformers = pytest.importorskip("transformers")
    from ddpdoctor.callbacks.transformers import Watch

    assert isinstance(Watch(), transformers.TrainerCallback)
    assert begun == [None]
