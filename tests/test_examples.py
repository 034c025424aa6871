"""Every example does what it says; here on less, so that it takes seconds."""

from __future__ import annotations

import runpy
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SMALLER: dict[str, tuple[str, dict[str, Any]]] = {
    "train_crystals.py": (
        "ddpdoctor.stack.crystal.train_from_list",
        {"n_epochs": 1, "width": 8, "heads": 2, "layers": 1, "cutoff": 4.0},
    ),
    "train_proteins.py": (
        "ddpdoctor.stack.protein.train_from_backbones",
        {"n_epochs": 1, "hidden_dim": 8, "num_encoder_layers": 1, "num_decoder_layers": 1},
    ),
    "train_detector.py": (
        "ddpdoctor.stack.detection.train_on_digits",
        {"n_images": 40, "n_epochs": 2, "stop_epoch": 1},
    ),
    "train_generator.py": (
        "ddpdoctor.stack.generation.train_generation",
        {"n_epochs": 1, "global_batch": 600, "width": 16, "heads": 2, "sampling_steps": 2},
    ),
}


def test_no_example_is_left_out() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SMALLER)


@pytest.mark.parametrize("name", SMALLER)
def test_an_example_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place, options = SMALLER[name]
    module, function = place.rsplit(".", 1)
    train = getattr(import_module(module), function)

    def smaller(*data: Any, **said: Any) -> Any:
        return train(*data, **{**said, **options})

    monkeypatch.setattr(place, smaller)
    monkeypatch.setattr(sys, "argv", [name])
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANK", raising=False)
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert "1 rank(s)" in capsys.readouterr().out
    assert list(tmp_path.glob("output/*/results.json"))
