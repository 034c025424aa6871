"""Whole trainings: alone, on many ranks, and when something is wrong."""

from __future__ import annotations

import json
import math
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from ase.build import bulk

from ddpdoctor.launch import WorkerGroup
from ddpdoctor.stack.crystal import (
    TrainingResult,
    dcdft,
    predict_from_list,
    train_from_extxyz,
    train_from_list,
)
from ddpdoctor.stack.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    LauncherError,
    MissingExtraError,
)
from ddpdoctor.stack.verification import verify_checkpoint
from tests.stack.bodies import tiny, train_crystals
from tests.thorough import first_of

Results = Callable[..., list[Any]]
Launch = Callable[..., WorkerGroup]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> TrainingResult:
    folder = tmp_path_factory.mktemp("done")
    return train_from_list(*dcdft(), **tiny({"n_epochs": 6, "output_dir": folder}))


def test_a_training_learns_and_says_what_it_came_to(done: TrainingResult) -> None:
    assert (done.n_train, done.n_validation, done.n_test) == (56, 7, 8)
    assert (done.world_size, len(done.history), len(done.test)) == (1, 6, 8)
    assert done.history[-1].train_loss < done.history[0].train_loss
    assert done.validation_mae == min(epoch.metric for epoch in done.history)
    errors = [abs(item.predicted[0] - item.labels[0]) for item in done.test]
    assert done.test_mae == pytest.approx(sum(errors) / 8)
    assert done.ratio == done.test_mae / done.baseline_mae


def test_results_are_written_as_json_and_as_plots(done: TrainingResult) -> None:
    folder = done.checkpoint.parent
    assert TrainingResult(**json.loads((folder / "results.json").read_text())) == done
    for plot in ("learning_curve.png", "parity.png"):
        assert (folder / plot).read_bytes().startswith(b"\x89PNG")
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize(
    "options", first_of([{}, {"use_angle": True, "use_lattice": True}]), ids=str
)
def test_4_ranks_come_to_the_same_result_as_1(
    results: Results, tmp_path: Path, options: dict[str, Any]
) -> None:
    common = {"float64": True, "cache_graphs": True, **options}
    [one] = results("train_crystals", 1, output_dir=str(tmp_path / "1"), batch_size=8, **common)
    four = results("train_crystals", 4, output_dir=str(tmp_path / "4"), batch_size=2, **common)
    for rank in four:
        assert (rank["world_size"], rank["weights"]) == (4, four[0]["weights"])
        for name in ("weights", "history", "test", "test_mae", "validation_mae"):
            torch.testing.assert_close(rank[name], one[name], rtol=1e-6, atol=1e-9)


def test_a_training_whose_rank_is_killed_as_it_saves_resumes_to_the_bit(
    launch: Launch, results: Results, tmp_path: Path
) -> None:
    # 56 crystals at 4 a rank: 7 steps an epoch, saved after 3, 6 and 7 of them.
    options = {"batch_size": 4, "dropout": 0.2, "use_angle": True, "checkpoint_every": 3}
    straight = results("train_crystals", 2, output_dir=str(tmp_path / "straight"), **options)
    stopped = tmp_path / "stopped"
    killed = launch(
        "train_crystals", 2, {"DIES": "1"}, output_dir=str(stopped), save_kills=5, **options
    )
    assert [fate.rank for fate in killed.poll() if fate.signal == signal.SIGKILL] == [1]
    for path in stopped.glob("step_*.pt"):
        verify_checkpoint(path)
    resumed = results("train_crystals", 2, output_dir=str(stopped), resume=True, **options)
    for name in ("history", "weights", "test"):
        assert [rank[name] for rank in resumed] == [rank[name] for rank in straight]


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("nodes", [1, 2])
def test_graphs_are_built_once_per_node(
    results: Results, tmp_path: Path, nodes: int, cached: bool
) -> None:
    folder = str(tmp_path) if cached else None
    built = results("graphs_built", 4, folder=folder, nodes=nodes)
    ranks = 4 // nodes
    for node in range(nodes):
        names = [name for rank in built[node * ranks : (node + 1) * ranks] for name in rank]
        assert len(names) == len(set(names)) == 11
    assert len(list(tmp_path.iterdir())) == cached
    if cached:
        assert results("graphs_built", 4, folder=folder, nodes=nodes) == [[]] * 4


def test_several_targets_are_learnt_at_once_and_predicted_from_a_checkpoint(
    results: Results, tmp_path: Path
) -> None:
    strucs, moduli = dcdft()
    # The second in units a thousand times as small.
    labels = [[modulus, -1000.0 * modulus] for modulus in moduli]
    done = train_from_list(strucs, labels, **tiny({"output_dir": tmp_path, "n_epochs": 8}))
    first, second = done.targets
    assert (first.name, second.name) == ("label 0", "label 1")
    assert first.test_mae < first.baseline_mae < 1 < second.baseline_mae
    assert second.test_mae < second.baseline_mae
    assert len(done.test[0].labels) == len(done.test[0].predicted) == 2
    # In units of the deviations, so that a thousandfold target does not drown the other.
    assert done.baseline_mae < 2
    three = results("predicted", 3, path=str(tmp_path), targets=["label 0", "label 1"])
    [lone] = results("predicted", 1, path=str(done.checkpoint), targets=["label 0", "label 1"])
    for formulas, values in three:
        assert formulas == lone[0]
        torch.testing.assert_close(values, lone[1], rtol=1e-5, atol=1e-5)
    known = {item.formula: item.predicted for item in done.test}
    for formula, values in zip(*lone, strict=True):
        if formula in known:
            assert values == pytest.approx(known[formula], rel=1e-5)


def test_logarithms_are_predicted_back_in_the_units_of_the_property(tmp_path: Path) -> None:
    strucs, logarithms = dcdft()
    moduli = [10**value for value in logarithms]
    done = train_from_list(strucs, moduli, **tiny({"output_dir": tmp_path, "log10": True}))
    of = {item.index: item.predicted[0] for item in done.test}
    told = predict_from_list(tmp_path, [strucs[index] for index in of]).values[:, 0]
    assert told == pytest.approx([10**value for value in of.values()], rel=1e-5)


def test_predicting_by_what_is_no_checkpoint_of_crystals_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        predict_from_list(tmp_path, [bulk("Cu")])
    torch.save({"settings": {"system": "protein"}}, tmp_path / "a.pt")
    with pytest.raises(ConfigError, match=r"a\.pt belongs to a protein training, not crystal"):
        predict_from_list(tmp_path / "a.pt", [bulk("Cu")])


def test_mixed_precision_learns_nearly_the_same(done: TrainingResult, tmp_path: Path) -> None:
    options = tiny({"n_epochs": 6, "use_amp": True, "output_dir": tmp_path})
    mixed = train_from_list(*dcdft(), **options)
    assert mixed.history[-1].train_loss == pytest.approx(done.history[-1].train_loss, rel=0.1)
    assert mixed.history != done.history


def test_a_training_says_in_the_log_what_it_trains_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level("INFO", logger="ddpdoctor.stack"):
        train_crystals(output_dir=str(tmp_path), n_epochs=1)
    assert "train 56, validation 7, test 8 structures" in caplog.text
    assert "1 rank(s)" in caplog.text
    assert capfd.readouterr() == ("", "")  # no progress bar, as nobody is watching


def test_the_metric_of_one_set_of_weights_is_the_same_on_any_number_of_ranks(
    results: Results, done: TrainingResult
) -> None:
    metrics = [
        metric
        for nproc in (1, 2, 3, 4)
        for metric in results("metric_of", nproc, path=str(done.checkpoint))
    ]
    assert len(metrics) == 10
    assert max(metrics) - min(metrics) <= 1e-9 * min(metrics)


def test_a_checkpoint_of_4_ranks_loads_in_one_process(results: Results, tmp_path: Path) -> None:
    four = results("train_crystals", 4, output_dir=str(tmp_path), batch_size=2)
    state = torch.load(four[0]["checkpoint"], weights_only=True)
    assert not [key for key in state["model"] if key.startswith("module.")]
    lone = train_crystals(output_dir=str(tmp_path), batch_size=2, resume=True)
    assert lone["weights"] == four[0]["weights"]
    assert lone["history"] == four[0]["history"]


REFUSED_FILES = {
    "DataError .*there is no file": ("none.extxyz", "m"),
    "DataError .*not a whole extended XYZ": ("corrupt.extxyz", "m"),
    "DataError .*no property 'm'; it has: x": ("good.extxyz", "m"),
    "DataError .*label 0 is nan, not a finite number": ("nan.extxyz", "x"),
}


@pytest.fixture
def extxyz_files(tmp_path: Path) -> Path:
    header = '1\nLattice="3 0 0 0 3 0 0 0 3" Properties=species:S:1:pos:R:3 '
    (tmp_path / "good.extxyz").write_text(header + "x=1.0\nCu 0 0 0\n")
    (tmp_path / "nan.extxyz").write_text(header + "x=nan\nCu 0 0 0\n")
    (tmp_path / "corrupt.extxyz").write_text("1\n" + header)
    return tmp_path


@pytest.mark.parametrize(("complaint", "given"), REFUSED_FILES.items(), ids=REFUSED_FILES.keys())
def test_a_file_that_cannot_be_used_is_the_same_error_on_every_rank(
    complaint: str, given: tuple[str, str], results: Results, extxyz_files: Path
) -> None:
    name, target = given
    errors = results(
        "error_of",
        2,
        call="train_file",
        path=str(extxyz_files / name),
        target=target,
        output_dir=str(extxyz_files / "out"),
    )
    assert errors[0] == errors[1]
    assert re.fullmatch(complaint + "[^\n]*", " ".join(errors[0]))


def test_labels_that_differ_by_rank_are_refused_by_all(results: Results, tmp_path: Path) -> None:
    errors = results("different_data", 2, output_dir=str(tmp_path))
    assert errors == [["DataError", "the ranks were given different structures or labels"]] * 2


def test_a_read_only_folder_is_refused_before_any_training(
    results: Results, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("locked")
    folder.chmod(0o555)
    errors = results("locked", 2, output_dir=str(folder))
    complaint = f"rank 0: cannot write into {folder}: Permission denied"
    assert errors == [["CheckpointError", complaint]] * 2
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("limit", first_of([10_000, 40_000]))
def test_a_disk_that_fills_up_is_the_same_error_on_every_rank_and_leaves_no_part(
    limit: int, results: Results, tmp_path: Path
) -> None:
    errors = results("limited", 2, output_dir=str(tmp_path), limit=limit)
    assert errors[0] == errors[1]
    assert errors[0][0] == "CheckpointError"
    assert "File too large" in errors[0][1]
    for path in tmp_path.iterdir():
        assert path.name.startswith("step_")
        torch.load(path, weights_only=True)


def test_labels_that_are_all_the_same_are_learnt(tmp_path: Path) -> None:
    strucs, labels = dcdft()
    result = train_from_list(strucs, [0.5] * len(labels), **tiny({"output_dir": tmp_path}))
    assert result.test_mae < 1
    assert (result.baseline_mae, result.ratio) == (0, math.inf)


def test_an_empty_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there are no structures"):
        train_from_list([], [], output_dir=tmp_path)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"n_epochs": 0}, "n_epochs=0: input should be greater than 0"),
        ({"batch_size": "many"}, "batch_size='many': "),
        ({"epochs": 3}, "there is no option epochs"),
        ({"learning_rate": float("nan")}, "learning_rate=nan: "),
        ({"n_epochs": 0, "lr": 1}, "n_epochs=0: .*; there is no option lr"),
    ],
)
def test_an_option_that_is_wrong_is_named_before_anything_else(
    options: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        train_from_list([], [], output_dir=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_distributed_without_a_launcher_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LauncherError, match="torchrun"):
        train_from_list(*dcdft(), distributed=True, output_dir=tmp_path)


def test_a_missing_extra_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vesin", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ddpdoctor\[crystal\]'"):
        train_from_list([bulk("Cu")], [1.0], output_dir=tmp_path)


def test_real_crystals_are_read_and_trained_on(elasticity: Path, tmp_path: Path) -> None:
    result = train_from_extxyz(
        elasticity, "shear_modulus", log10=True, **tiny({"output_dir": tmp_path, "n_epochs": 1})
    )
    assert (result.n_train, result.n_validation, result.n_test) == (409, 51, 52)
    assert result.baseline_mae == pytest.approx(0.35, abs=0.1)
