"""The training loop: the same on any number of ranks, and across an interruption."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from ddpdoctor.launch import World
from ddpdoctor.stack.config import TrainingConfig
from ddpdoctor.stack.errors import ConfigError, TrainingError
from ddpdoctor.stack.process_group import session, wrap
from ddpdoctor.stack.trainer import learning_rate_at, sync_if, windows
from tests.stack.bodies import train_toy

Results = Callable[..., list[Any]]
Launch = Callable[..., World]


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
@pytest.mark.parametrize(("nproc", "kill_after"), [(1, 14), (2, 7), (4, 4), (4, 6)])
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


def test_resuming_a_finished_training_changes_nothing(tmp_path: Path) -> None:
    done = train_toy(str(tmp_path))
    again = train_toy(str(tmp_path), resume=True)
    assert again["history"] == done["history"]
    assert again["weights"] == done["weights"]


def test_a_folder_with_another_training_is_not_overwritten(tmp_path: Path) -> None:
    train_toy(str(tmp_path))
    with pytest.raises(ConfigError, match="resume=True, or choose another output_dir"):
        train_toy(str(tmp_path))


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


def test_mixed_precision_learns(tmp_path: Path) -> None:
    history = train_toy(str(tmp_path), use_amp=True, n_epochs=20, learning_rate=0.05)["history"]
    assert history[-1][0] < history[0][0] / 2


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
    config = TrainingConfig(learning_rate=2.0, warmup=0.1)
    assert learning_rate_at(0.05, config) == pytest.approx(1.0)
    assert learning_rate_at(0.1, config) == pytest.approx(2.0)
    assert learning_rate_at(0.55, config) == pytest.approx(1.0)
    assert learning_rate_at(1.0, config) == pytest.approx(0.0)
    assert learning_rate_at(1.0, TrainingConfig(learning_rate=2.0, warmup=1.0)) == 2.0
