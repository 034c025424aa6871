"""Launch files: those that can be started here are, and the manifest fits its schema."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ddpdoctor.configure.files import LAUNCHERS
from ddpdoctor.configure.plan import Impossible, Plan
from ddpdoctor.configure.trial import attempt
from tests.patience import ENDLESS
from tests.run.launchers import slurm
from tests.thorough import first_of

PLAN = Plan(
    nproc=2,
    nodes=1,
    device="cpu",
    threads=1,
    master="node01",
    image=None,
    script="train.py",
    python=sys.executable,
    name="train",
    why_nproc="as asked for",
    why_threads="2 CPUs for 2 ranks",
    here=True,
)


def changed(**values: Any) -> Plan:
    return Plan(**{field: getattr(PLAN, field) for field in Plan.__slots__} | values)


@pytest.mark.thorough
@pytest.mark.parametrize("launcher", ["torchrun", "accelerate", "mpirun"])
def test_ranks_that_the_file_starts_meet_and_talk(launcher: str) -> None:
    file = LAUNCHERS[launcher]
    if why := file.refuse(PLAN):
        pytest.skip(why)
    outcome = attempt(file, PLAN, file.render(PLAN, "file"))
    assert outcome.state == "works", outcome.words
    assert outcome.words.startswith("2 ranks on cpu met")


@pytest.fixture(scope="module")
def of_slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    if not slurm.is_here():
        pytest.skip("needs root, and the daemons of slurm-wlm")
    with slurm.cluster(tmp_path_factory.mktemp("slurm")) as variables:
        yield variables


@pytest.mark.thorough
def test_a_batch_script_is_submitted_to_slurm_and_its_ranks_meet(
    of_slurm: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in of_slurm.items():
        monkeypatch.setenv(name, value)
    file = LAUNCHERS["slurm"]
    outcome = attempt(file, PLAN, file.render(PLAN, "file"))
    assert outcome.state == "works", outcome.words
    assert outcome.words.startswith("2 ranks on cpu met")


TRAIN = """
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(2, 1))
model(torch.ones(4, 2)).sum().backward()
print(f"rank {dist.get_rank()} of {dist.get_world_size()} trained", flush=True)
dist.destroy_process_group()
"""


@pytest.mark.parametrize("launcher", first_of(["torchrun", "mpirun", "slurm", "accelerate"]))
def test_the_users_own_script_trains_as_the_file_says_it_is_started(
    launcher: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    more = request.getfixturevalue("of_slurm") if launcher == "slurm" else {}
    file = LAUNCHERS[launcher]
    if launcher != "slurm" and (why := file.refuse(PLAN)):
        pytest.skip(why)
    (tmp_path / "my train.py").write_text(TRAIN)
    text = file.render(changed(script="my train.py"), "my job")
    (tmp_path / "my job").write_text(text)
    how = next(line for line in text.splitlines() if "Start it with:" in line)
    command = how.partition("Start it with: ")[2].removesuffix(" ARGUMENTS")
    search = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["sh", "-c", command.replace("sbatch", "sbatch --wait")],
        cwd=tmp_path,
        env={**os.environ, **more, "PATH": search},
        capture_output=True,
        text=True,
        timeout=ENDLESS,
    )
    said = ran.stdout + "".join(log.read_text() for log in tmp_path.glob("*.out"))
    assert ran.returncode == 0, ran.stderr + said
    trained = sorted(re.findall(r"rank \d of 2 trained", said))
    assert trained == ["rank 0 of 2 trained", "rank 1 of 2 trained"]


def test_ranks_that_train_alone_are_found_out() -> None:
    # What `accelerate config` writes for CPUs: accelerate starts one process, and says nothing.
    file = LAUNCHERS["accelerate"]
    text = file.render(PLAN, "file").replace("MULTI_GPU", "MULTI_CPU")
    outcome = attempt(file, PLAN, text)
    assert (outcome.state, outcome.words) == ("fails", "2 ranks were to join, 1 did")


def test_a_file_that_does_not_start_is_told_with_its_last_words() -> None:
    file = LAUNCHERS["torchrun"]
    text = file.render(changed(python="/nowhere/python"), "file")
    outcome = attempt(file, PLAN, text)
    assert outcome.state == "fails"
    assert "/nowhere/python" in outcome.words


def test_the_last_words_are_told_without_the_password_in_them() -> None:
    file = LAUNCHERS["torchrun"]
    outcome = attempt(file, PLAN, "#!/bin/sh\necho no http://ada:s3cr3t@host; exit 3\n")
    assert outcome.words == "it ended with 3: no http://***@host"


@pytest.mark.parametrize("launcher", sorted(LAUNCHERS))
def test_several_nodes_are_never_tried_on_one(launcher: str) -> None:
    plan = changed(nodes=4, image="image")
    assert attempt(LAUNCHERS[launcher], plan, "false").state == "not tried"


@pytest.mark.parametrize("launcher", ["torchrun", "mpirun", "slurm"])
@pytest.mark.parametrize("nodes", [1, 3])
def test_scripts_are_written_in_the_language_of_their_shell(launcher: str, nodes: int) -> None:
    plan = changed(nodes=nodes, script="my train.py", device="cuda")
    text = LAUNCHERS[launcher].render(plan, "my job")
    shell = text.splitlines()[0].removeprefix("#!")
    subprocess.run([shell, "-n"], input=text, text=True, check=True)


@pytest.mark.parametrize(
    ("master", "endpoint"),
    [("node01", "node01:29400"), ("2001:db8::1", "[2001:db8::1]:29400")],
)
def test_a_script_with_a_space_in_its_name_is_one_argument_and_an_endpoint_another(
    master: str, endpoint: str, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nfor word in "$@"; do echo "$word" >> {said}; done\n')
    python.chmod(0o755)
    plan = changed(script="my train.py", python=str(python), nodes=2, master=master)
    text = LAUNCHERS["torchrun"].render(plan, "file")
    subprocess.run(["sh"], input=text, text=True, check=True)
    words = said.read_text().splitlines()
    assert words[-1] == "my train.py"
    assert f"--rdzv-endpoint={endpoint}" in words


@pytest.mark.parametrize("launcher", sorted(LAUNCHERS))
def test_no_file_counts_anything_but_what_was_planned(launcher: str) -> None:
    few, many = (
        LAUNCHERS[launcher].render(changed(nproc=n, image="image", device="cuda"), "file")
        for n in (3, 7)
    )
    assert few != many
    assert few.replace("3", "7") == many.replace("3", "7")


@pytest.mark.parametrize(("nproc", "nodes"), [(1, 1), (4, 1), (8, 3)])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_configuration_of_accelerate_is_read_as_it_was_planned(
    nproc: int, nodes: int, device: Literal["cpu", "cuda"], tmp_path: Path
) -> None:
    config_args = pytest.importorskip("accelerate.commands.config.config_args")
    plan = changed(nproc=nproc, nodes=nodes, device=device)
    path = tmp_path / "accelerate.yaml"
    path.write_text(LAUNCHERS["accelerate"].render(plan, "file"))
    read = config_args.load_config_from_file(str(path))
    assert read.num_processes == nproc * nodes
    assert read.num_machines == nodes
    assert read.use_cpu == (device == "cpu")


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(("nproc", "nodes"), [(1, 1), (4, 1), (8, 3)])
def test_each_line_says_why_it_is_there(
    nproc: int, nodes: int, device: Literal["cpu", "cuda"]
) -> None:
    plan = changed(nproc=nproc, nodes=nodes, device=device, image="image")
    lines = LAUNCHERS["accelerate"].render(plan, "file").splitlines()
    assert [line for line in lines if "#" not in line] == []
    # What only holds the next line needs no reason; what sets something does.
    manifest = LAUNCHERS["kubernetes"].render(plan, "file").splitlines()
    pairs = list(zip(["", *manifest], manifest, strict=False))
    alone = [
        line.strip()
        for before, line in pairs
        if re.search(r": \S", line) and "#" not in line and "#" not in before
    ]
    assert set(alone) <= {"name: shared-memory", "- name: shared-memory", *OF_THE_MOUNT}
    for launcher in ("torchrun", "mpirun", "slurm"):
        blocks = LAUNCHERS[launcher].render(plan, "file").split("\n\n")
        assert all(block.lstrip().startswith("#") for block in blocks), launcher


OF_THE_MOUNT = ("mountPath: /dev/shm", "medium: Memory")  # their reason is above the volume


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Variable(Strict):
    name: str
    value: str


class Mount(Strict):
    name: str
    mountPath: str


class Resources(Strict):
    limits: dict[Literal["cpu", "memory", "nvidia.com/gpu"], str | int]


class Container(Strict):
    name: Literal["pytorch"]
    image: str
    command: list[str]
    env: list[Variable]
    resources: Resources
    volumeMounts: list[Mount]


class EmptyDir(Strict):
    medium: Literal["", "Memory"]
    sizeLimit: str


class Volume(Strict):
    name: str
    emptyDir: EmptyDir


class PodSpec(Strict):
    containers: Annotated[list[Container], Field(min_length=1)]
    volumes: list[Volume]


class Template(Strict):
    spec: PodSpec


class Replicas(Strict):
    replicas: int
    restartPolicy: Literal["Always", "OnFailure", "Never", "ExitCode"]
    template: Template


class RunPolicy(Strict):
    cleanPodPolicy: Literal["All", "Running", "None"]


class ReplicaSpecs(Strict):
    Master: Replicas
    Worker: Replicas | None = None


class Spec(Strict):
    nprocPerNode: str
    runPolicy: RunPolicy
    pytorchReplicaSpecs: ReplicaSpecs


class Metadata(Strict):
    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]


class PyTorchJob(Strict):
    """The part of kubeflow.org_pytorchjobs.yaml (training operator 1.9) that a manifest may use."""

    apiVersion: Literal["kubeflow.org/v1"]
    kind: Literal["PyTorchJob"]
    metadata: Metadata
    spec: Spec


@pytest.mark.parametrize("nodes", [1, 4])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_manifest_fits_the_schema_of_the_operator(nodes: int, device: str) -> None:
    plan = changed(nodes=nodes, device=device, image="a/b:c")
    text = LAUNCHERS["kubernetes"].render(plan, "file")
    job = PyTorchJob.model_validate(yaml.safe_load(text))
    specs = job.spec.pytorchReplicaSpecs
    assert specs.Master.replicas + (specs.Worker.replicas if specs.Worker else 0) == nodes
    for pod in filter(None, (specs.Master, specs.Worker)):
        container = pod.template.spec.containers[0]
        assert {one.name for one in container.volumeMounts} == {
            one.name for one in pod.template.spec.volumes
        }
        assert ("nvidia.com/gpu" in container.resources.limits) == (device == "cuda")
    with pytest.raises(ValidationError):
        PyTorchJob.model_validate({**yaml.safe_load(text), "more": 1})


def test_a_pod_without_an_image_is_not_written() -> None:
    with pytest.raises(Impossible, match="--image"):
        LAUNCHERS["kubernetes"].render(PLAN, "file")
