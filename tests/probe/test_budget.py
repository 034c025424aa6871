"""A probe of twenty seconds ends within thirty: its arithmetic, by a clock of our own."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ddpdoctor.probe import bandwidth, clocks, correctness, links, pace
from ddpdoctor.probe import rank as probing
from ddpdoctor.probe.model import RankFacts
from ddpdoctor.probe.talk import Timing

SECONDS, AT_MOST = 20.0, 30.0
_PACE = 3 * pace._SUSTAINED * pace._PIECES
"""As long as a machine of three ranks on one core takes for its pieces."""


@dataclass
class Simulated:
    """A machine on which all that has a budget takes so much more than it was given."""

    over: float
    now: float = 0.0
    measured: list[str] = field(default_factory=list)

    def takes(self, name: str, seconds: float) -> None:
        self.measured.append(name)
        self.now += seconds * self.over

    def timed(self, _work: Any, budget: float, _most: int = 0) -> Timing:
        self.takes("timed", budget)
        return Timing(*[budget / 5] * 4)


def took(gone: float, over: float, monkeypatch: pytest.MonkeyPatch) -> float:
    """Seconds of the whole, if starting took `gone`."""
    machine = Simulated(over)
    talk: Any = SimpleNamespace(
        size=4,
        rank=0,
        device=torch.device("cpu"),
        progress=SimpleNamespace(tell=lambda *_: None),
        agreed=lambda number: number,
        gathered=lambda one: [one],
        timed=machine.timed,
    )
    of_pace = pace.Pace(1e-3, (1e-3, 1e-3), 1e-3)
    clock = SimpleNamespace(monotonic=lambda: machine.now, time=lambda: gone)
    nothing = {name: (lambda *_: None, one[1]) for name, one in bandwidth._OPERATIONS.items()}
    monkeypatch.setattr(bandwidth, "_OPERATIONS", nothing)
    monkeypatch.setattr(bandwidth, "_COPY", 4)
    for module in (probing, bandwidth):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(
        correctness, "checks", lambda _, budget: machine.takes("values", budget) or []
    )
    monkeypatch.setattr(
        links, "links", lambda _, budget: (machine.takes("links", budget) or [], True)
    )
    monkeypatch.setattr(pace, "compute", lambda _: machine.takes("compute", _PACE) or of_pace)
    monkeypatch.setattr(pace, "steps", lambda _: (machine.takes("steps", _PACE) or of_pace, 1e-3))
    monkeypatch.setattr(clocks, "clocks", lambda *_: [])
    facts = RankFacts(rank=0, host="a", device="CPU", torch="2", rendezvous=0.1)
    probing._measure(talk, facts, "gloo", probing._left(SECONDS, 0.0))
    assert {"values", "links", "compute", "steps", "timed"} <= set(machine.measured)
    return gone + machine.now


@settings(deadline=None)
@given(gone=st.floats(0.0, 20.0), over=st.floats(0.1, 1.2))
def test_whatever_starting_takes_the_whole_is_over_within_thirty_seconds(
    gone: float, over: float
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert took(gone, over, monkeypatch) <= AT_MOST


def test_a_probe_that_had_to_wait_for_nothing_uses_its_time() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert bandwidth.SIZES
        assert took(0.0, 1.0, monkeypatch) == pytest.approx(SECONDS, rel=0.2)
