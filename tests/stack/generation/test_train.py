"""The accelerate trainer: the laws of every system of the stack."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ddpdoctor.launch import WorkerGroup
from ddpdoctor.stack.errors import ConfigError
from ddpdoctor.stack.generation import train_generation
from ddpdoctor.stack.generation.data import Noised, load_digits
from tests.stack.generation.bodies import SIZE
from tests.thorough import first_of

Launch = Callable[..., WorkerGroup]


@pytest.fixture
def bodies() -> Path:
    return Path(__file__).with_name("bodies.py")


def assert_equal(ours: Any, theirs: Any, rtol: float) -> None:
    for part in ("history", "weights", "average", "last"):
        torch.testing.assert_close(ours[part], theirs[part], rtol=rtol, atol=1e-5)


@pytest.mark.parametrize("nproc", first_of([3, 4]))
def test_ranks_learn_what_one_process_learns_from_the_same_global_batch(
    results: Callable[..., list[Any]], tmp_path: Path, nproc: int
) -> None:
    # 1437 digits: 4 batches of 300, of which 3 make a window, so that the last one is shorter.
    common = {"accumulation_steps": 3, "clip_norm": 0.1}
    [lone] = results("train_digits", 1, output_dir=str(tmp_path / "1"), **common)
    share = {"batch_size": 300 // nproc}
    ranks = results("train_digits", nproc, output_dir=str(tmp_path / "n"), **share, **common)
    for rank in ranks:
        assert_equal(rank, lone, rtol=1e-3)
        assert rank["measured"] == ranks[0]["measured"]
        assert rank["weights"] == ranks[0]["weights"]
        assert rank["measured"][:2] == pytest.approx(lone["measured"][:2], rel=1e-4)


# 4 batches an epoch; killed in its middle, and in the second.
@pytest.mark.parametrize(("nproc", "after"), first_of([(2, 6), (1, 3), (3, 5)]))
def test_a_killed_training_that_is_resumed_equals_one_that_never_stopped(
    launch: Launch, results: Callable[..., list[Any]], tmp_path: Path, nproc: int, after: int
) -> None:
    options = {"batch_size": 300 // nproc, "checkpoint_every": 2, "keep_checkpoints": 1}
    straight = results("train_digits", nproc, output_dir=str(tmp_path / "straight"), **options)
    stopped = str(tmp_path / "stopped")
    launch(
        "train_digits",
        nproc,
        output_dir=stopped,
        signal_after=after,
        signal_rank=nproc - 1,
        **options,
    )
    assert results("train_digits", nproc, output_dir=stopped, resume=True, **options) == straight


@pytest.mark.thorough
@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_is_killed_while_it_saves_leaves_the_checkpoint_before_whole(
    launch: Launch, results: Callable[..., list[Any]], tmp_path: Path, rank: int
) -> None:
    options = {"batch_size": 150, "checkpoint_every": 2, "keep_checkpoints": 1}
    straight = results("train_digits", 2, output_dir=str(tmp_path / "straight"), **options)
    stopped = tmp_path / "stopped"
    stopped.mkdir()
    (stopped / "step_notes.txt").touch()  # these are a user's own
    for name in ("step_0", "step_images", ".step_images.tmp"):
        (stopped / name).mkdir()
    launch("train_digits", 2, output_dir=str(stopped), kill_in_save=2, signal_rank=rank, **options)
    assert sorted(path.name for path in stopped.glob("step_*")) == [
        *("step_0", "step_000000002", "step_images", "step_notes.txt")
    ]
    resumed = results("train_digits", 2, output_dir=str(stopped), resume=True, **options)
    assert resumed == straight
    assert [path.name for path in stopped.glob(".*.tmp")] == [".step_images.tmp"]
    assert sorted(path.name for path in stopped.glob("step_*")) == [
        *("step_0", "step_000000008", "step_images", "step_notes.txt")
    ]


@pytest.mark.thorough
@pytest.mark.parametrize(("after", "step"), [(1, 2), (3, 4)])
def test_sigterm_to_one_rank_saves_and_ends_all(
    results: Callable[..., list[Any]], tmp_path: Path, after: int, step: int
) -> None:
    # Heeded after the next step; the fourth is the last of its epoch, which is ended first.
    options = {"batch_size": 150}
    straight = results("train_digits", 2, output_dir=str(tmp_path / "straight"), **options)
    stopped = tmp_path / "stopped"
    signals = {"signal_after": after, "number": signal.SIGTERM, "signal_rank": 1}
    errors = results("error_of", 2, output_dir=str(stopped), **signals, **options)
    saved = stopped / f"step_{step:09d}"
    text = f"asked to end by SIGTERM, saved {saved}: the same command with resume goes on"
    assert errors == [["StoppedError", text]] * 2
    resumed = results("train_digits", 2, output_dir=str(stopped), resume=True, **options)
    assert resumed == straight


@pytest.mark.thorough
def test_a_checkpoint_of_two_ranks_goes_on_in_one_process(
    results: Callable[..., list[Any]], tmp_path: Path
) -> None:
    two = results("train_digits", 2, output_dir=str(tmp_path), batch_size=150, n_epochs=1)
    state = torch.load(tmp_path / "step_000000004/custom_checkpoint_0.pkl", weights_only=True)
    assert not [key for key in state["model"] if key.startswith("module.")]
    state["settings"]["batch_size"] = 300
    torch.save(state, tmp_path / "step_000000004/custom_checkpoint_0.pkl")
    [lone] = results("train_digits", 1, output_dir=str(tmp_path), n_epochs=1, resume=True)
    assert lone["history"] == two[0]["history"]


def test_noise_belongs_to_seed_epoch_and_sample_alone() -> None:
    digits, _, _ = load_digits(0)
    one, other = Noised(digits, 0), Noised(digits, 0)
    first = one[7]["noise"]
    other[3]
    assert torch.equal(other[7]["noise"], first)
    assert not torch.equal(one[8]["noise"], first)
    other.draw_for(1)
    assert not torch.equal(other[7]["noise"], first)
    assert not torch.equal(Noised(digits, 1)[7]["noise"], first)


def test_the_variable_that_says_which_gpus_are_visible_is_left_alone(
    results: Callable[..., list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    train_generation(output_dir=tmp_path, n_epochs=1, batch_size=700, **SIZE)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "3,1"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"batch_size": 2000}, "a global batch of 2000 is more than the 1437 digits"),
        ({"use_amp": True, "amp_dtype": "float16"}, "no float16 on the CPU"),
        ({"align_layer": 4}, "there is no align_layer 4 in 3 layers"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_line(
    options: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        train_generation(output_dir=tmp_path, **options)


def test_a_folder_with_checkpoints_of_another_system_is_refused(tmp_path: Path) -> None:
    (tmp_path / "step_000000001").write_bytes(b"")
    with pytest.raises(ConfigError, match="the option resume, or choose"):
        train_generation(output_dir=tmp_path, **SIZE)
    with pytest.raises(ConfigError, match="is no checkpoint of a training by accelerate"):
        train_generation(output_dir=tmp_path, resume=True, **SIZE)


@pytest.mark.thorough
def test_accelerate_launches_the_command_with_mixed_precision(tmp_path: Path) -> None:
    size = [f"--{name}={value}" for name, value in SIZE.items()]
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu"]
    train = ["-m", "ddpdoctor", "train", "generation", "--batch-size=100", "--epochs=3", "--amp"]
    done = subprocess.run(
        [*launch, "--num_processes=2", "--main_process_port=0", *train, *size],
        cwd=tmp_path,
        env={**os.environ, "ACCELERATE_USE_CPU": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "on 2 rank(s)" in done.stdout
    assert "global batch 200: 100 samples on each of 2 rank(s)" in done.stderr
    written = json.loads((tmp_path / "output/results.json").read_text())
    assert (written["world_size"], written["options"]["use_amp"]) == (2, True)
    first, *_, last = written["history"]
    assert last["train_loss"] < 0.9 * first["train_loss"]
    assert last["metric"] < 0.97 * first["metric"]
    assert (tmp_path / "output/digits.png").read_bytes().startswith(b"\x89PNG")
