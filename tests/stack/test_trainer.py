"""The training loop: the same on any number of ranks, and across an interruption."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from ddpdoctor.launch import WorkerGroup
from ddpdoctor.stack.errors import ConfigError, TrainingError
from ddpdoctor.stack.process_group import session, wrap
from ddpdoctor.stack.trainer import schedule, sync_if, windows
from tests.patience import ENDLESS
from tests.stack.bodies import train_toy
from tests.thorough import first_of

Results = Callable[..., list[Any]]
Launch = Callable[..., WorkerGroup]


def test_4_ranks_learn_what_1_process_learns_from_the_same_global_batch(
    results: Results, tmp_path: Path
) -> None:
    # 37 samples in steps of 3 x 8: the second window of an epoch is short, its last micro-batch
    # uneven, and a rank of it may be left without samples.
    options = {"accumulation_steps": 3, "clip_norm": 0.5}
    [lone] = results("train_toy", 1, output_dir=str(tmp_path / "1"), batch_size=8, **options)
    four = results("train_toy", 4, output_dir=str(tmp_path / "4"), batch_size=2, **options)
    for rank in four:
        torch.testing.assert_close(rank["weights"], lone["weights"], rtol=1e-9, atol=1e-15)
        torch.testing.assert_close(rank["history"], lone["history"], rtol=1e-9, atol=0)
        assert rank["weights"] == four[0]["weights"]
        assert rank["history"] == four[0]["history"]


def test_accumulated_batches_learn_what_one_big_batch_learns(tmp_path: Path) -> None:
    # The last window of an epoch holds 4 + 1 samples, the last big batch 5.
    small = train_toy(str(tmp_path / "s"), batch_size=4, accumulation_steps=2, clip_norm=1e9)
    big = train_toy(str(tmp_path / "b"), batch_size=8, clip_norm=1e9)
    torch.testing.assert_close(small["weights"], big["weights"], rtol=1e-9, atol=1e-15)


# 37 samples at 2 a batch and 2 batches a step: 10 steps an epoch alone, 5 at 2 ranks, 3 at 4.
@pytest.mark.parametrize(("nproc", "kill_after"), first_of([(2, 7), (1, 14), (4, 4), (4, 6)]))
def test_a_killed_training_that_is_resumed_equals_one_that_never_stopped(
    launch: Launch, results: Results, tmp_path: Path, nproc: int, kill_after: int
) -> None:
    options = {
        "dropout": 0.2,
        "batch_size": 2,
        "accumulation_steps": 2,
        "checkpoint_every": 2,
        "keep_checkpoints": 1,
    }
    straight = results("train_toy", nproc, output_dir=str(tmp_path / "straight"), **options)
    stopped = tmp_path / "stopped"
    killed = launch("train_toy", nproc, output_dir=str(stopped), kill_after=kill_after, **options)
    assert signal.SIGKILL in {fate.signal for fate in killed.poll()}
    assert list(stopped.glob("step_*.pt"))
    resumed = results("train_toy", nproc, output_dir=str(stopped), resume=True, **options)
    assert resumed == straight  # to the bit: dropout, history, best checkpoint and all
    assert sorted(p.name for p in stopped.iterdir()) == sorted(
        p.name for p in (tmp_path / "straight").iterdir()
    )


def test_a_loss_of_masked_numbers_is_divided_by_all_of_them_whoever_has_them(
    results: Results, tmp_path: Path
) -> None:
    # About 11 of 37 samples have a number to be learnt, so that most ranks of four have none in
    # most of their batches of 2; and some steps have none at all.
    options = {"masked": True, "clip_norm": 1e9, "n_epochs": 4}
    [lone] = results("train_toy", 1, output_dir=str(tmp_path / "1"), batch_size=4, **options)
    four = results("train_toy", 4, output_dir=str(tmp_path / "4"), batch_size=1, **options)
    for rank in four:
        torch.testing.assert_close(rank["weights"], lone["weights"], rtol=1e-9, atol=1e-15)
        torch.testing.assert_close(rank["history"], lone["history"], rtol=1e-9, atol=0)


def test_the_best_metric_may_be_the_highest(tmp_path: Path) -> None:
    lowest = train_toy(str(tmp_path / "low"), learning_rate=0.05)
    highest = train_toy(str(tmp_path / "high"), learning_rate=0.05, higher_is_better=True)
    metrics = [metric for _, metric, _ in highest["history"]]
    assert highest["history"] == lowest["history"]
    assert (lowest["best_metric"], highest["best_metric"]) == (min(metrics), max(metrics))
    assert highest["best"] != lowest["best"]


# The second stage begins with the third of 4 epochs; an epoch has 10 steps alone, 5 at 2 ranks.
@pytest.mark.parametrize(("nproc", "kill_after"), first_of([(2, 10), (1, 13), (1, 25), (2, 13)]))
def test_a_training_that_was_killed_in_either_stage_goes_on_in_it(
    launch: Launch, results: Results, tmp_path: Path, nproc: int, kill_after: int
) -> None:
    options = {"dropout": 0.2, "batch_size": 4, "n_epochs": 4, "stop_epoch": 2, "masked": True}
    options |= {"checkpoint_every": 3, "keep_checkpoints": 1}
    straight = results("train_toy", nproc, output_dir=str(tmp_path / "straight"), **options)
    plain = results(
        "train_toy", nproc, output_dir=str(tmp_path / "plain"), **{**options, "stop_epoch": None}
    )
    assert straight[0]["extra"]["stage"] == 2
    assert straight[0]["history"][:2] == plain[0]["history"][:2]
    assert straight[0]["history"][2] != plain[0]["history"][2]
    stopped = str(tmp_path / "stopped")
    launch("train_toy", nproc, output_dir=stopped, kill_after=kill_after, **options)
    assert results("train_toy", nproc, output_dir=stopped, resume=True, **options) == straight


@pytest.mark.parametrize(("nproc", "term_after"), first_of([(3, 2), (1, 4), (1, 10), (3, 4)]))
def test_sigterm_to_one_rank_saves_and_ends_all_and_the_training_goes_on(
    results: Results, tmp_path: Path, nproc: int, term_after: int
) -> None:
    # 4 a step alone, 12 at 3 ranks: an epoch has 10 steps or 4, the last of which ends it.
    options = {"dropout": 0.2, "batch_size": 4}
    straight = results("train_toy", nproc, output_dir=str(tmp_path / "straight"), **options)
    stopped = tmp_path / "stopped"
    errors = results(
        "error_of",
        nproc,
        call="train_toy",
        output_dir=str(stopped),
        term_after=term_after,
        term_rank=nproc - 1,
        **options,
    )
    # Asked for after a step, heeded after the next one.
    saved = stopped / f"step_{term_after + 1:09d}.pt"
    complaint = f"asked to end by SIGTERM, saved {saved}: the same command with resume goes on"
    assert errors == [["StoppedError", complaint]] * nproc
    assert saved.is_file()
    resumed = results("train_toy", nproc, output_dir=str(stopped), resume=True, **options)
    assert resumed == straight


def restarted(folder: Path, kill_after: int | None, options: dict[str, Any]) -> list[str]:
    """How torchrun starts two ranks of restarted.py, twice if need be."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    script = str(Path(__file__).with_name("restarted.py"))
    told = json.dumps({**options, "kill_after": kill_after})
    return [*torchrun, "--nproc-per-node=2", "--max-restarts=1", script, str(folder), told]


@pytest.mark.thorough
def test_what_torchrun_starts_again_goes_on_to_the_same_end(
    results: Results, tmp_path: Path
) -> None:
    options = {"dropout": 0.2, "batch_size": 2, "checkpoint_every": 2}
    straight = results("train_toy", 2, output_dir=str(tmp_path / "straight"), **options)
    command = restarted(tmp_path, 13, options)
    # torchrun keeps its store, with the addresses of the first attempt in it (2.13).
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        assert json.loads((tmp_path / f"rank{rank}.json").read_text()) == straight[rank]


@pytest.mark.thorough
def test_sigterm_to_torchrun_saves_and_the_training_goes_on(
    results: Results, tmp_path: Path
) -> None:
    options = {"dropout": 0.2, "batch_size": 1, "n_epochs": 6}
    command = restarted(tmp_path, None, {**options, "pause": 0.1})
    job = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    out = tmp_path / "out"
    while not list(out.glob("step_*.pt")) and job.poll() is None:
        time.sleep(0.05)
    job.send_signal(signal.SIGTERM)
    _, said = job.communicate(timeout=ENDLESS)
    assert job.returncode != 0
    assert "StoppedError: asked to end by SIGTERM, saved" in said
    resumed = results("train_toy", 2, output_dir=str(out), resume=True, **options)
    straight = results("train_toy", 2, output_dir=str(tmp_path / "straight"), **options)
    assert resumed == straight


def test_the_same_global_batch_is_the_same_training_on_any_number_of_ranks(
    results: Results, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"global_batch": 12, "learning_rate_rule": "sqrt", "base_batch": 3}
    with caplog.at_level("INFO", logger="ddpdoctor.stack"):
        lone = train_toy(str(tmp_path / "1"), **options)
    assert "global batch 12: 12 samples on each of 1 rank(s)" in caplog.text
    assert "learning rate 0.004" in caplog.text
    three = results("train_toy", 3, output_dir=str(tmp_path / "3"), **options)
    torch.testing.assert_close(three[0]["weights"], lone["weights"], rtol=1e-9, atol=1e-15)
    assert max(rate for *_, rate in lone["history"]) <= 0.004


def test_a_checkpoint_of_another_system_is_refused_in_one_line(tmp_path: Path) -> None:
    train_toy(str(tmp_path))
    path = max(tmp_path.glob("step_*.pt"))
    state = torch.load(path, weights_only=True)
    state["settings"]["system"] = "crystal"
    torch.save(state, path)
    with pytest.raises(ConfigError, match=f"{path} belongs to a crystal training, not toy"):
        train_toy(str(tmp_path), resume=True)
    torch.save({"epoch": 3}, path)
    with pytest.raises(ConfigError, match=f"{path} is no checkpoint of a training"):
        train_toy(str(tmp_path), resume=True)


def test_a_training_goes_on_with_another_number_of_ranks(
    launch: Launch, results: Results, tmp_path: Path
) -> None:
    common = {"accumulation_steps": 1, "checkpoint_every": 1, "kill_after": 3}
    four = tmp_path / "4"
    launch("train_toy", 4, output_dir=str(four), batch_size=2, **common)
    [resumed] = results("train_toy", 1, output_dir=str(four), batch_size=2, resume=True)
    assert len(resumed["history"]) == 3
    assert all(math.isfinite(loss) for loss, *_ in resumed["history"])
    # Every sample was counted once, by four ranks or by one: with labels of about 5 +- 3, the mean
    # squared error of an untrained model is about 34.
    assert 10 < resumed["history"][0][0] < 60


def test_resuming_where_nothing_is_begins(tmp_path: Path) -> None:
    assert len(train_toy(str(tmp_path), resume=True)["history"]) == 3


def test_resuming_a_finished_training_changes_nothing_whatever_lies_beside_it(
    tmp_path: Path,
) -> None:
    for name in ("step_notes.txt", "step_000000100.pt.bak", "step_best.pt"):
        (tmp_path / name).write_text("no checkpoint")
    (tmp_path / "step_0").mkdir()
    done = train_toy(str(tmp_path))
    again = train_toy(str(tmp_path), resume=True)
    assert again["history"] == done["history"]
    assert again["weights"] == done["weights"]


def test_a_folder_with_another_training_is_not_overwritten(tmp_path: Path) -> None:
    train_toy(str(tmp_path))
    with pytest.raises(ConfigError, match="the option resume, or choose another output_dir"):
        train_toy(str(tmp_path))


def test_a_folder_with_a_training_by_accelerate_is_not_overwritten_either(tmp_path: Path) -> None:
    (tmp_path / "step_000000004.pt").mkdir()
    with pytest.raises(ConfigError, match="the option resume, or choose another output_dir"):
        train_toy(str(tmp_path))
    with pytest.raises(ConfigError, match=r"step_000000004\.pt is a checkpoint of a training by"):
        train_toy(str(tmp_path), resume=True)


def test_resuming_with_other_options_names_them(tmp_path: Path) -> None:
    train_toy(str(tmp_path), learning_rate=0.1)
    with pytest.raises(ConfigError, match=r"learning_rate was 0\.1, is 0\.2$"):
        train_toy(str(tmp_path), learning_rate=0.2, resume=True, num_workers=0)


def test_data_loader_workers_change_nothing(tmp_path: Path) -> None:
    without = train_toy(str(tmp_path / "0"), dropout=0.2)
    assert train_toy(str(tmp_path / "1"), dropout=0.2, num_workers=1) == without


def test_a_loss_that_is_not_finite_ends_the_training(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="try a learning_rate below"):
        train_toy(str(tmp_path), learning_rate=1e300, warmup=0.0, clip_norm=1e300)
    assert not list(tmp_path.glob(".*.tmp"))


@pytest.mark.parametrize("dtype", ["auto", "bfloat16", "float16"])
def test_mixed_precision_learns(tmp_path: Path, dtype: str) -> None:
    options = {"use_amp": True, "amp_dtype": dtype, "n_epochs": 20, "learning_rate": 0.05}
    history = train_toy(str(tmp_path), **options)["history"]
    assert history[-1][0] < history[0][0] / 2
    state = torch.load(max(tmp_path.glob("step_*.pt")), weights_only=True)
    assert bool(state["scaler"]) is (dtype == "float16")


@pytest.mark.distributed(nproc=2)
def test_gradients_travel_once_per_window() -> None:
    with session() as world:
        net = wrap(nn.Linear(3, 1), world)
        calls: list[int] = []

        def count(state, bucket):  # type: ignore[no-untyped-def]  # torch reads annotations
            calls.append(bucket.index())
            future = torch.futures.Future()
            future.set_result(bucket.buffer())
            return future

        net.register_comm_hook(None, count)
        for micro in (1, 2, 3):
            with sync_if(net, micro == 3):
                net(torch.ones(2, 3)).sum().backward()
            assert len(calls) == (micro == 3)


def test_the_last_window_is_what_is_left() -> None:
    assert list(windows(range(7), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(windows([], 3)) == []


def test_the_learning_rate_rises_then_falls_to_nothing() -> None:
    assert schedule(0.05, 0.1) == pytest.approx(0.5)
    assert schedule(0.1, 0.1) == pytest.approx(1.0)
    assert schedule(0.55, 0.1) == pytest.approx(0.5)
    assert schedule(1.0, 0.1) == pytest.approx(0.0)
    assert schedule(1.0, 1.0) == 1.0
