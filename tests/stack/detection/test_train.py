"""Whole trainings: alone, on many ranks, killed and resumed, and when something is wrong."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ddpdoctor.launch import WorkerGroup
from ddpdoctor.stack.detection import DetectionResult, load_model, train_on_digits
from ddpdoctor.stack.detection.train import mean_boxes
from ddpdoctor.stack.errors import ConfigError, LauncherError, MissingExtraError
from ddpdoctor.stack.verification import verify_checkpoint
from tests.stack.detection.bodies import tiny
from tests.stack.detection.test_scenes import one_object
from tests.thorough import first_of

Results = Callable[..., list[Any]]
Launch = Callable[..., WorkerGroup]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> DetectionResult:
    folder = tmp_path_factory.mktemp("done")
    size = {"n_images": 300, "hidden_dim": 32, "n_epochs": 8, "stop_epoch": 5}
    return train_on_digits(**tiny({**size, "output_dir": folder}))


def test_a_training_learns_and_says_what_it_came_to(done: DetectionResult) -> None:
    assert (done.n_train, done.n_validation, done.n_test) == (240, 30, 30)
    assert (done.world_size, done.stop_epoch, len(done.history)) == (1, 5, 8)
    assert done.history[-1].train_loss < done.history[0].train_loss / 1.5
    assert done.validation_map == max(epoch.metric for epoch in done.history)
    assert done.test_map > 2 * done.baseline_map
    assert done.test_map50 >= done.test_map


def test_both_stages_leave_their_best_and_the_last(done: DetectionResult) -> None:
    folder = done.checkpoint.parent
    assert DetectionResult(**json.loads((folder / "results.json").read_text())) == done
    for name in ("best_stg1.pth", "best_stg2.pth", "last.pth"):
        verify_checkpoint(folder / name)
        load_model(folder / name)
    assert len(list(folder.glob("step_*.pt"))) <= 3  # the last two, and the best
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("nproc", first_of([2, 4]))
def test_ranks_come_to_the_same_result_as_one_process_with_the_global_batch(
    results: Results, tmp_path: Path, nproc: int
) -> None:
    [one] = results("train", 1, output_dir=str(tmp_path / "1"), batch_size=8, float64=True)
    many = results(
        "train", nproc, output_dir=str(tmp_path / "n"), batch_size=8 // nproc, float64=True
    )
    for rank in many:
        assert (rank["world_size"], rank["weights"]) == (nproc, many[0]["weights"])
        for name in ("weights", "last", "history", "test", "best", "decay"):
            torch.testing.assert_close(rank[name], one[name], rtol=1e-5, atol=1e-8)


def test_the_metric_of_one_set_of_weights_is_the_same_on_any_number_of_ranks(
    results: Results, done: DetectionResult
) -> None:
    metrics = [
        metric
        for nproc in (1, 2, 3, 4)
        for metric in results("metric_of", nproc, path=str(done.checkpoint))
    ]
    assert metrics[0] > 0
    assert metrics == pytest.approx([metrics[0]] * 10, rel=1e-12)


# 40 images at 4 a rank: 5 steps an epoch on 2 ranks. Saves: steps 3 and 5 of each epoch.
@pytest.mark.parametrize(("nproc", "dies", "save"), first_of([(2, 0, 3), (2, 1, 6), (1, 0, 5)]))
def test_a_training_whose_rank_is_killed_in_either_stage_resumes_to_the_bit(
    launch: Launch, results: Results, tmp_path: Path, nproc: int, dies: int, save: int
) -> None:
    options = {"batch_size": 8 // nproc, "checkpoint_every": 3}
    straight = results("train", nproc, output_dir=str(tmp_path / "straight"), **options)
    stopped = tmp_path / "stopped"
    killed = launch(
        "train", nproc, {"DIES": str(dies)}, output_dir=str(stopped), save_kills=save, **options
    )
    assert [f.rank for f in killed.poll() if f.signal == signal.SIGKILL] == [dies]
    left = [*stopped.glob("step_*.pt"), *stopped.glob("*.pth")]
    assert left
    for path in left:
        verify_checkpoint(path)
    resumed = results("train", nproc, output_dir=str(stopped), resume=True, **options)
    for name in ("history", "weights", "last", "test", "best", "decay", "generator"):
        assert [rank[name] for rank in resumed] == [rank[name] for rank in straight], name
    names = [sorted(p.name for p in (tmp_path / w).iterdir()) for w in ("straight", "stopped")]
    assert names[0] == names[1]


def test_no_rank_waits_for_one_that_fails_in_stage_2(launch: Launch, tmp_path: Path) -> None:
    world = launch("train_with_a_fault_on_rank_1", 3, output_dir=str(tmp_path))
    assert all(fate.exit_code == 1 for fate in world.poll())  # all have ended by themselves
    assert "Input/output error" in world.ranks[1].stderr.read_text()
    for name in ("best_stg1.pth", "last.pth"):
        verify_checkpoint(tmp_path / name)


@pytest.mark.thorough
def test_a_training_goes_on_with_another_number_of_ranks(
    launch: Launch, results: Results, tmp_path: Path
) -> None:
    options = {"output_dir": str(tmp_path), "batch_size": 4, "checkpoint_every": 3}
    launch("train", 2, {"DIES": "0"}, save_kills=7, **options)
    [lone] = results("train", 1, resume=True, **options)
    assert len(lone["history"]) == 5


def test_the_baseline_names_each_class_at_its_mean_box_by_its_frequency() -> None:
    guess = mean_boxes([one_object(0, 0, 8), one_object(16, 8, 8)])
    assert guess.tolist() == [[1.0, 3.0, 8 / 32, 4 / 32, 16 / 32, 12 / 32]]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"stop_epoch": 24}, "stop_epoch 24 is not below n_epochs 24: there would be no second"),
        ({"stop_epoch": 999999}, "stop_epoch 999999 is not below n_epochs 24"),
        ({"stop_epoch": 0}, "stop_epoch=0: input should be greater than 0"),
        ({"ema_restart_decay": 1.0}, r"ema_restart_decay=1\.0: input should be less than 1"),
        ({"n_images": 5}, "n_images=5: input should be greater than or equal to 10"),
    ],
)
def test_an_option_that_is_wrong_is_named_before_anything_else(
    options: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        train_on_digits(output_dir=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_distributed_without_a_launcher_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LauncherError, match="torchrun"):
        train_on_digits(distributed=True, output_dir=tmp_path)


@pytest.mark.parametrize("module", ["sklearn.datasets", "scipy.optimize"])
def test_a_missing_extra_says_what_to_install(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ddpdoctor\[detection\]'"):
        train_on_digits(**tiny({"output_dir": tmp_path}))


def test_a_checkpoint_of_another_system_is_refused(tmp_path: Path, done: DetectionResult) -> None:
    state = torch.load(done.checkpoint, weights_only=True)
    state["settings"]["system"] = "protein"
    torch.save(state, tmp_path / "step_000000001.pt")
    with pytest.raises(ConfigError, match="belongs to a protein training, not detection"):
        train_on_digits(**tiny({"output_dir": tmp_path, "resume": True}))
