"""Where the time of a training goes, and what is written about it."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from ddpdoctor.stack.timing import PhaseTimer
from tests.stack.bodies import train_toy

PHASES = {"data", "forward", "backward", "optimizer"}


def test_a_timer_adds_up_each_phase_and_begins_anew_when_it_is_asked() -> None:
    timer = PhaseTimer(torch.device("cpu"))
    for _ in timer.loading(range(3)):
        with timer.phase("forward"):
            pass
    first = timer.take()
    assert first.keys() == {"data", "forward"}
    assert all(seconds > 0 for seconds in first.values())
    assert timer.take() == {}


def test_every_epoch_says_how_long_each_phase_took(tmp_path: Path) -> None:
    train_toy(str(tmp_path))
    state = torch.load(max(tmp_path.glob("step_*.pt")), weights_only=True)
    for epoch in state["progress"]["history"]:
        assert epoch["phases"].keys() == PHASES
        assert 0 < sum(epoch["phases"].values()) <= epoch["seconds"]


def test_a_profile_names_the_phases_and_changes_nothing(tmp_path: Path) -> None:
    plain = train_toy(str(tmp_path / "plain"), batch_size=4, dropout=0.2)
    profiled = train_toy(str(tmp_path / "p"), batch_size=4, dropout=0.2, profile_steps=3)
    assert profiled == plain
    trace = json.loads((tmp_path / "p/trace.json").read_text())
    names = [event.get("name") for event in trace["traceEvents"]]
    assert set(names) >= PHASES
    assert names.count("optimizer") == 3
    assert "backward" in (tmp_path / "p/profile.txt").read_text()


def test_tensorboard_gets_the_curves_once_though_the_training_was_resumed(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train_toy(str(tmp_path), n_epochs=3, tensorboard=True)
    for checkpoint in sorted(tmp_path.glob("step_*.pt"))[-1:]:
        checkpoint.unlink()
    done = train_toy(str(tmp_path), n_epochs=3, tensorboard=True, resume=True)
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    curve = [(event.step, event.value) for event in events.Scalars("metric")]
    assert [step for step, _ in curve] == [0, 1, 2]
    told = torch.tensor([value for _, value in curve], dtype=torch.float64)
    wanted = torch.tensor([metric for _, metric, _ in done["history"]], dtype=torch.float64)
    torch.testing.assert_close(told, wanted, rtol=1e-5, atol=0)
