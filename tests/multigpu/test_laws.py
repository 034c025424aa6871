"""The laws of every system of the stack, on GPUs with nccl, and on the CPU with gloo."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.multigpu.bodies import TRAIN
from tests.multigpu.conftest import on_gpus_all

Ranks = Callable[..., list[Any]]


@pytest.mark.thorough
def test_each_rank_has_a_device_of_its_own_and_nothing_on_another(
    ranks: Ranks, backend: str
) -> None:
    for each in ranks("binding", 2, backend=backend, by_torchrun=True):
        assert each["device"] == each["expected"]
        assert each["current"] in (None, int(each["device"][-1:] == "1"))
        assert not any(each["elsewhere"])
        assert each["sum"] == 2


@on_gpus_all("system", *TRAIN)
def test_2_ranks_learn_what_1_learns_from_the_same_global_batch(
    ranks: Ranks, backend: str, system: str
) -> None:
    options = {"system": system, "backend": backend, "global_batch": 16, "clip_norm": 1e9}
    [lone] = ranks("train", 1, output="1", **options)
    two = ranks("train", 2, output="2", **options)
    assert two[0] == two[1]
    # In float32, where sums on a GPU come in any order: equal but for rounding that has grown.
    torch.testing.assert_close(two[0], lone, rtol=2e-2, atol=1e-3)


def test_a_training_that_was_stopped_and_resumed_equals_one_that_never_stopped(
    ranks: Ranks, backend: str, tmp_path: Path
) -> None:
    options = {"backend": backend, "dropout": 0.2, "batch_size": 4, "checkpoint_every": 3}
    straight = ranks("toy", 2, output="straight", **options)
    ranks("toy", 2, output="stopped", keep_checkpoints=3, **options)
    # As if it had been stopped in the middle of its last epoch.
    for checkpoint in sorted((tmp_path / "stopped").glob("step_*.pt"))[-2:]:
        checkpoint.unlink()
    assert ranks("toy", 2, output="stopped", resume=True, **options) == straight


@on_gpus_all("dtype", "bfloat16", "float16")
@pytest.mark.thorough
def test_mixed_precision_learns_nearly_the_same(ranks: Ranks, backend: str, dtype: str) -> None:
    options = {"system": "crystal", "backend": backend, "n_epochs": 4}
    full = ranks("train", 2, output="full", **options)
    half = ranks("train", 2, output="half", use_amp=True, amp_dtype=dtype, **options)
    assert half[0] == half[1]
    assert half[0] != full[0]
    torch.testing.assert_close(half[0][-1], full[0][-1], rtol=0.1, atol=0)
