"""The command's options, as the guides write them."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ddpdoctor import cli
from ddpdoctor.stack.protein import jobs

DOCUMENTED = """--pdb_path data/cache --cache_dir data/cache --epochs 50 --batch_size 8
    --learning_rate 1e-4 --hidden_dim 256 --num_encoder_layers 3 --num_decoder_layers 3
    --mask_ratio 0.15 --save_dir checkpoints --ddp --master_port 12356"""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the command hands to the stack."""
    monkeypatch.setenv("MASTER_PORT", "29500")  # so that it is put back
    calls: list[dict[str, Any]] = []

    def train(data: Any, **options: Any) -> SimpleNamespace:
        calls.append({"data": data, **options})
        return SimpleNamespace(sentence="done\n")

    monkeypatch.setattr(jobs, "train_from_pdb", train)
    monkeypatch.setattr(jobs, "train_from_backbones", train)
    return calls


@pytest.mark.parametrize("spelling", ["_", "-"])
def test_every_documented_flag_is_taken(calls: list[dict[str, Any]], spelling: str) -> None:
    words = [w.replace("_", spelling) if w[0] == "-" else w for w in DOCUMENTED.split()]
    assert cli.run(["train", "protein", *words]) == 0
    [call] = calls
    wanted = {
        "data": Path("data/cache"),
        "cache_dir": Path("data/cache"),
        "n_epochs": 50,
        "batch_size": 8,
        "learning_rate": 1e-4,
        "hidden_dim": 256,
        "num_encoder_layers": 3,
        "num_decoder_layers": 3,
        "mask_ratio": 0.15,
        "output_dir": Path("checkpoints"),
        "distributed": True,
    }
    assert {name: call[name] for name in wanted} == wanted


def test_without_files_it_trains_on_made_up_chains(calls: list[dict[str, Any]]) -> None:
    assert cli.run(["train", "protein", "--n-synthetic", "3", "--seed", "5"]) == 0
    assert [chain.entry for chain in calls[0]["data"]] == [f"synthetic-{i}" for i in range(3)]
    assert calls[0]["random_seed"] == 5


def test_a_port_is_used_where_the_launcher_left_it_open(
    calls: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MASTER_PORT")
    assert cli.run(["train", "protein", "--n-synthetic", "3", "--master-port", "12356"]) == 0
    assert os.environ["MASTER_PORT"] == "12356"


def test_a_port_that_the_launcher_has_chosen_stays_and_that_is_said(
    calls: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("RANK", "0")
    assert cli.run(["train", "protein", "--n-synthetic", "3", "--master-port", "12356"]) == 0
    assert os.environ["MASTER_PORT"] == "29500"
    assert "the launcher has set MASTER_PORT=29500" in caplog.text
