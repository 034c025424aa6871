"""Every example does what it says; here on less, so that it takes seconds."""

from __future__ import annotations

import runpy
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from torch.distributed.run import parse_args

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


def test_the_job_for_kubernetes_says_to_torchrun_what_it_says_to_the_operator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The operator's variables are those of training-operator 1.9, setPodEnv in envvar.go."""
    job = yaml.safe_load((EXAMPLES / "kubernetes.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v1", "PyTorchJob")
    assert set(job["spec"]) <= {"nprocPerNode", "runPolicy", "pytorchReplicaSpecs"}
    replicas = job["spec"]["pytorchReplicaSpecs"]
    assert set(replicas) == {"Master", "Worker"}
    assert replicas["Master"]["replicas"] == 1
    assert all(set(each) == {"replicas", "restartPolicy", "template"} for each in replicas.values())
    pods = sum(each["replicas"] for each in replicas.values())
    set_by_operator = {
        "PET_NNODES": str(pods),
        "PET_NPROC_PER_NODE": job["spec"]["nprocPerNode"],
        "PET_NODE_RANK": "1",
        "PET_MASTER_ADDR": "train-master-0",
        "PET_MASTER_PORT": "23456",
    }
    for name, value in set_by_operator.items():
        monkeypatch.setenv(name, value)
    for each in replicas.values():
        (container,) = each["template"]["spec"]["containers"]
        assert container["name"] == "pytorch"
        assert container["command"][:4] == ["ddpdoctor", "run", "--", "torchrun"]
        (token,) = container["env"]
        assert token["name"] == "DDPDOCTOR_TOKEN"
        assert "secretKeyRef" in token["valueFrom"]
        asked = parse_args(container["command"][4:])
        assert (asked.nnodes, asked.node_rank) == (str(pods), 1)
        assert (asked.master_addr, asked.master_port) == ("train-master-0", 23456)
        gpus = container["resources"]["limits"]["nvidia.com/gpu"]
        assert asked.nproc_per_node == str(gpus)
