"""The switch of stages, the refresh, and the files with names of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ddpdoctor.stack.detection.stages import (
    BEST,
    DECAY_STEP,
    LAST,
    give_name,
    is_best_of_its_stage,
    refreshes,
    two_stages,
)
from ddpdoctor.stack.errors import CheckpointError
from ddpdoctor.stack.process_group import World
from ddpdoctor.stack.resume import Epoch, Progress, Trained
from tests.stack.detection.bodies import save_checkpoint, trained

Results = Callable[..., list[Any]]
LONE = World(0, 0, 1, torch.device("cpu"), None)
STOP, END = 2, 6


class Training:
    """Epochs without any training: weights that say the epoch, and metrics that a test gives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.it: Trained = trained()
        self.progress = Progress()
        self.hook = two_stages(folder, STOP, END, 0.5, LONE)

    def epoch(self, metric: float) -> None:
        self.hook(self.progress, self.it)
        self.progress.step += 1
        with torch.no_grad():
            for weights in (*self.it.model.parameters(), *self.average.module.parameters()):
                weights.fill_(self.progress.step)
        record = Epoch(self.progress.epoch, 0.0, metric, 0.0, 0.0, {})
        self.progress.history.append(record)
        self.progress = replace(self.progress, epoch=self.progress.epoch + 1)
        save_checkpoint(self.folder, self.progress, self.it)

    @property
    def average(self) -> Any:
        return self.it.average

    @property
    def weight(self) -> float:
        [value] = {v for p in self.it.model.parameters() for v in p.unique().tolist()}
        return float(value)


def weight_in(path: Path) -> float:
    state = torch.load(path, weights_only=True)
    return float(state["model"]["norm.weight"][0])


def test_stage_2_begins_with_the_best_of_stage_1_and_another_decay(tmp_path: Path) -> None:
    training = Training(tmp_path)
    training.epoch(0.3)
    training.epoch(0.2)
    assert (training.weight, training.average.decay) == (2, 0.9)
    training.hook(training.progress, training.it)
    assert (training.weight, training.average.decay) == (1, 0.5)
    assert weight_in(tmp_path / BEST[1]) == 1
    assert weight_in(tmp_path / LAST) == 2
    assert not (tmp_path / BEST[2]).exists()


def test_the_decay_that_was_restarted_is_the_one_that_averages(tmp_path: Path) -> None:
    training = Training(tmp_path)
    training.epoch(0.3)
    training.epoch(0.2)
    training.hook(training.progress, training.it)
    training.average.updates = 10_000
    with torch.no_grad():
        for weights in training.it.model.parameters():
            weights.fill_(3.0)
    training.average.update(training.it.model)
    moved = next(training.average.module.parameters()).flatten()[0].item()
    assert moved == pytest.approx(0.5 * 1 + 0.5 * 3)


def test_an_epoch_of_stage_2_that_is_no_better_is_undone(tmp_path: Path) -> None:
    training = Training(tmp_path)
    for metric in (0.3, 0.2, 0.1):  # the first of stage 2 is its best, however bad
        training.epoch(metric)
    training.hook(training.progress, training.it)
    assert (training.weight, training.average.decay) == (3, 0.5)
    training.epoch(0.05)
    training.hook(training.progress, training.it)
    assert (training.weight, training.average.decay) == (1, pytest.approx(0.5 - DECAY_STEP))
    training.epoch(0.4)
    training.hook(training.progress, training.it)
    assert (training.weight, training.average.decay) == (5, pytest.approx(0.5 - DECAY_STEP))
    assert [weight_in(tmp_path / name) for name in (BEST[1], BEST[2], LAST)] == [1, 5, 5]
    assert refreshes([0.3, 0.2, 0.1, 0.05, 0.4], STOP) == 1


def test_what_the_hook_does_twice_is_what_it_does_once(tmp_path: Path) -> None:
    training = Training(tmp_path)
    for metric in (0.3, 0.2, 0.1, 0.05):
        training.epoch(metric)
    for _ in range(2):  # as in a training that is resumed between two epochs
        training.hook(training.progress, training.it)
        decay = pytest.approx(0.5 - DECAY_STEP)
        assert (training.weight, training.average.decay) == (1, decay)
    assert not list(tmp_path.glob(".*"))


def test_after_the_last_epoch_nothing_is_reloaded(tmp_path: Path) -> None:
    training = Training(tmp_path)
    for metric in (0.3, 0.2, 0.1, 0.2, 0.3, 0.1):
        training.epoch(metric)
    training.hook(training.progress, training.it)
    assert training.weight == 6
    assert weight_in(tmp_path / BEST[2]) == 5


@given(st.lists(st.floats(0, 1), max_size=12), st.integers(1, 8))
def test_each_stage_has_its_own_best(metrics: list[float], stop: int) -> None:
    best = [e for e in range(len(metrics)) if is_best_of_its_stage(metrics[: e + 1], stop)]
    for stage in (range(min(stop, len(metrics))), range(stop, len(metrics))):
        mine = [epoch for epoch in best if epoch in stage]
        if stage:
            assert mine[0] == stage[0]
            assert metrics[mine[-1]] == max(metrics[epoch] for epoch in stage)
            assert mine == sorted(mine, key=lambda epoch: metrics[epoch])


def test_a_name_outlives_the_one_that_the_file_had_first(tmp_path: Path) -> None:
    first, second, name = tmp_path / "step_1.pt", tmp_path / "step_2.pt", tmp_path / "last.pth"
    first.write_text("one")
    second.write_text("two")
    give_name(first, name)
    give_name(first, name)
    first.unlink()
    assert name.read_text() == "one"
    give_name(second, name)
    assert name.read_text() == "two"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["last.pth", "step_2.pt"]


def test_where_a_file_has_one_name_only_it_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refused)
    (tmp_path / "a").write_text("one")
    give_name(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_text() == "one"
    assert not (tmp_path / "a").samefile(tmp_path / "b")
    with pytest.raises(CheckpointError, match=r"cannot read .*none"):
        give_name(tmp_path / "none", tmp_path / "b")


def test_a_torn_checkpoint_is_the_same_error_on_every_rank(
    results: Results, tmp_path: Path
) -> None:
    whole = save_checkpoint(tmp_path, Progress(step=1), trained())
    (tmp_path / BEST[1]).write_bytes(whole.read_bytes()[:-100])
    for path, reason in (
        (tmp_path / BEST[1], "not a whole checkpoint"),
        (tmp_path / "a", "No such"),
    ):
        errors = results("error_of", 2, call="resume_state", path=str(path))
        assert errors[0] == errors[1]
        assert errors[0][0] == "CheckpointError"
        assert reason in errors[0][1]
    assert results("error_of", 2, call="resume_state", path=str(whole))[0][0] == "nothing"
