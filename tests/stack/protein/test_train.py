"""Whole trainings: alone, on many ranks, killed and resumed, and when something is wrong."""

from __future__ import annotations

import itertools
import json
import math
import re
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ddpdoctor.launch import WorkerGroup
from ddpdoctor.stack.errors import ConfigError, DataError, LauncherError, MissingExtraError
from ddpdoctor.stack.protein import (
    ProteinResult,
    synthetic_backbones,
    train_from_backbones,
    train_from_pdb,
)
from ddpdoctor.stack.protein.dataset import as_chains, split_by_family
from ddpdoctor.stack.protein.graph import GraphConfig
from ddpdoctor.stack.verification import verify_checkpoint
from tests.stack.protein.bodies import N_CHAINS, tiny
from tests.stack.protein.chains import backbone, write_pdb
from tests.thorough import first_of

Results = Callable[..., list[Any]]
Launch = Callable[..., WorkerGroup]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> ProteinResult:
    folder = tmp_path_factory.mktemp("done")
    options = tiny({"n_epochs": 6, "output_dir": folder, "batch_size": 8, "hidden_dim": 16})
    return train_from_backbones(synthetic_backbones(80, 0), **options)


def test_a_training_learns_and_says_what_it_came_to(done: ProteinResult) -> None:
    assert (done.n_train, done.n_validation, done.n_test) == (64, 8, 8)
    assert (done.world_size, len(done.history)) == (1, 6)
    assert done.history[-1].train_loss < done.history[0].train_loss
    assert done.validation_loss == min(epoch.metric for epoch in done.history)
    assert done.ratio == pytest.approx(math.exp(done.test_loss) / math.exp(done.baseline_loss))
    assert done.ratio < 0.9
    assert done.test_accuracy > 1.3 * done.baseline_accuracy


def test_results_are_written_as_json(done: ProteinResult) -> None:
    folder = done.checkpoint.parent
    assert ProteinResult(**json.loads((folder / "results.json").read_text())) == done
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("nproc", first_of([2, 4]))
def test_ranks_come_to_the_same_result_as_one_process_with_the_global_batch(
    results: Results, tmp_path: Path, nproc: int
) -> None:
    # With so small a ratio some ranks have no masked residue in some steps.
    common = {"float64": True, "mask_ratio": 0.02}
    [one] = results("train", 1, output_dir=str(tmp_path / "1"), batch_size=4, **common)
    many = results("train", nproc, output_dir=str(tmp_path / "n"), batch_size=4 // nproc, **common)
    for rank in many:
        assert (rank["world_size"], rank["weights"]) == (nproc, many[0]["weights"])
        for name in ("weights", "history", "test"):
            torch.testing.assert_close(rank[name], one[name], rtol=1e-6, atol=1e-9)


def test_a_rank_without_a_masked_residue_takes_part_in_the_step(results: Results) -> None:
    lone, idle = results("step_without_masks_on_rank_1", 2)
    assert lone == idle
    assert any(map(any, lone))


def test_the_metric_of_one_set_of_weights_is_the_same_on_any_number_of_ranks(
    results: Results, done: ProteinResult
) -> None:
    metrics = [
        metric
        for nproc in (1, 2, 3, 4)
        for metric in results("metric_of", nproc, path=str(done.checkpoint))
    ]
    for metric in metrics:
        assert metric == pytest.approx(metrics[0], rel=1e-9)


@pytest.mark.parametrize(("nproc", "dies"), first_of([(2, 0), (2, 1), (1, 0)]))
def test_a_training_whose_rank_is_killed_as_it_saves_resumes_to_the_bit(
    launch: Launch, results: Results, tmp_path: Path, nproc: int, dies: int
) -> None:
    options = {"n_epochs": 3, "batch_size": 2, "dropout": 0.2, "checkpoint_every": 3}
    straight = results("train", nproc, output_dir=str(tmp_path / "straight"), **options)
    stopped = tmp_path / "stopped"
    killed = launch(
        "train", nproc, {"DIES": str(dies)}, output_dir=str(stopped), save_kills=4, **options
    )
    assert [f.rank for f in killed.poll() if f.signal == signal.SIGKILL] == [dies]
    left = sorted(stopped.glob("step_*.pt"))
    assert left
    for path in left:
        verify_checkpoint(path)
    resumed = results("train", nproc, output_dir=str(stopped), resume=True, **options)
    for name in ("history", "weights", "test", "generator"):
        assert [rank[name] for rank in resumed] == [rank[name] for rank in straight]
    names = [sorted(p.name for p in (tmp_path / w).iterdir()) for w in ("straight", "stopped")]
    assert names[0] == names[1]


def test_no_rank_waits_for_one_that_fails_in_the_middle_of_an_epoch(
    launch: Launch, tmp_path: Path
) -> None:
    world = launch("train_with_a_fault_on_rank_1", 3, output_dir=str(tmp_path))
    assert all(fate.exit_code == 1 for fate in world.poll())  # all have ended by themselves
    assert "Input/output error" in world.ranks[1].stderr.read_text()
    [left] = tmp_path.glob("step_*.pt")  # that of the epoch before
    verify_checkpoint(left)


def test_real_proteins_are_read_cached_and_trained_on(
    results: Results, pdb: Path, tmp_path: Path
) -> None:
    (tmp_path / "pdb").mkdir()
    for entry in ("1a8o", "1l2y", "2beg", "5zng", "1k6p", "4p5j"):
        shutil.copy(pdb / f"{entry}.pdb", tmp_path / "pdb")

    def train(output: str) -> list[Any]:
        return results(
            "train_files",
            2,
            path=str(tmp_path / "pdb"),
            cache_dir=str(tmp_path / "cache"),
            output_dir=str(tmp_path / output),
            n_epochs=1,
        )

    first, second = train("a"), train("b")
    assert sum(first[0]["sizes"]) == 1 + 1 + 5 + 2 + 2
    assert re.fullmatch(r".*4p5j\.pdb holds no protein chain of 8 .*", first[0]["left_out"][0])
    [cache] = (tmp_path / "cache").iterdir()
    for name in ("history", "weights", "test"):
        assert [rank[name] for rank in second] == [rank[name] for rank in first]
    write_pdb(tmp_path / "pdb" / "new.pdb", backbone(length=20))
    train("c")
    assert len(list((tmp_path / "cache").iterdir())) == 2
    assert cache.exists()


def test_a_cache_gives_what_the_files_give(tmp_path: Path) -> None:
    (tmp_path / "pdb").mkdir()
    for number in range(4):
        write_pdb(tmp_path / "pdb" / f"{number}.pdb", backbone(number, 20))
    outcomes = []
    for name, cache in (("a", None), ("b", tmp_path / "cache"), ("c", tmp_path / "cache")):
        options = tiny({"output_dir": tmp_path / name, "n_epochs": 1})
        outcomes.append(train_from_pdb(tmp_path / "pdb", cache_dir=cache, **options).test_loss)
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_a_file_that_cannot_be_read_gets_one_line_and_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(4):
        write_pdb(tmp_path / f"{number}.pdb", backbone(number, 20))
    (tmp_path / "torn.cif").write_text("data_x\nloop_\n_atom_site.id\n_atom_site.x\n1\n")
    with caplog.at_level("WARNING", logger="ddpdoctor.stack"):
        result = train_from_pdb(tmp_path, **tiny({"output_dir": tmp_path / "out", "n_epochs": 1}))
    assert result.n_train + result.n_validation + result.n_test == 4
    assert [record.message for record in caplog.records] == [f"left out: {result.left_out[0]}"]
    assert re.match(r".*torn\.cif cannot be read: [^\n]*$", result.left_out[0])


def test_chains_of_one_entry_or_of_one_sequence_stay_in_one_set() -> None:
    chains = synthetic_backbones(20, 0)
    twins = [chains[0], chains[1], *chains]  # the same sequence, in an entry of its own
    found = as_chains(twins, GraphConfig())
    found.entries[:2] = ["a", "a"]
    for seed in range(10):
        split = split_by_family(found, seed)
        parts = (split.train, split.validation, split.test)
        assert sorted(itertools.chain(*parts)) == list(range(22))
        assert all(parts)
        [home] = [part for part in parts if 0 in part]
        assert {0, 1, 2, 3} <= set(home)


REFUSED = {
    r"DataError .*there is no file or folder .*none": {"path": "none"},
    r"DataError .*holds no file that ends with \.pdb": {"path": "empty"},
    r"DataError .*none of the 1 file\(s\) of .*rna can be used; the first: .*": {"path": "rna"},
    r"DataError .*1 different protein\(s\) cannot be split in three.*": {"path": "one"},
}


@pytest.mark.parametrize(("complaint", "given"), REFUSED.items(), ids=list(REFUSED))
def test_a_folder_that_cannot_be_used_is_the_same_error_on_every_rank(
    complaint: str, given: dict[str, str], results: Results, tmp_path: Path
) -> None:
    for folder in ("empty", "rna", "one"):
        (tmp_path / folder).mkdir()
    (tmp_path / "rna" / "a.pdb").write_text("REMARK nothing\n")
    write_pdb(tmp_path / "one" / "a.pdb", backbone(length=20))
    errors = results(
        "error_of",
        2,
        call="train_files",
        path=str(tmp_path / given["path"]),
        cache_dir=str(tmp_path / "cache"),
        output_dir=str(tmp_path / "out"),
    )
    assert errors[0] == errors[1]
    assert re.fullmatch(complaint + "[^\n]*", " ".join(errors[0]))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"mask_ratio": 0}, "mask_ratio=0: input should be greater than 0"),
        ({"mask_ratio": 1.5}, r"mask_ratio=1\.5: input should be less than 1"),
        ({"hidden_dim": 9}, "hidden_dim 9 is not a multiple of heads 4"),
        ({"num_decoder_layers": 0}, "num_decoder_layers=0"),
    ],
)
def test_an_option_that_is_wrong_is_named_before_anything_else(
    options: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        train_from_backbones([], output_dir=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_distributed_without_a_launcher_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LauncherError, match="torchrun"):
        train_from_pdb(tmp_path, distributed=True, output_dir=tmp_path)


def test_no_chains_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there are no chains"):
        train_from_backbones([], output_dir=tmp_path)


def test_a_missing_extra_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gemmi", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ddpdoctor\[protein\]'"):
        train_from_pdb(tmp_path, output_dir=tmp_path)


def test_a_checkpoint_of_another_system_is_refused(tmp_path: Path, done: ProteinResult) -> None:
    state = torch.load(done.checkpoint, weights_only=True)
    state["settings"]["system"] = "crystal"
    torch.save(state, tmp_path / done.checkpoint.name)
    with pytest.raises(ConfigError, match="belongs to a crystal training, not protein"):
        train_from_backbones(
            synthetic_backbones(N_CHAINS, 0), **tiny({"output_dir": tmp_path, "resume": True})
        )
