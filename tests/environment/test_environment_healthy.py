"""Every launcher on every kind of host, set up as it should be: `env` gives no warning."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest
from environment_cases import TORCHRUN
from healthy_machine import ENVIRONMENT, GIB
from quick import QUICK_TORCH

from ddpdoctor.environment.checks import findings
from ddpdoctor.environment.model import (
    Absent,
    Cpus,
    Environment,
    Fabric,
    Gpu,
    Interface,
    Limit,
    Limits,
    Master,
    Torch,
    Unknown,
)
from tests.patience import ENDLESS
from tests.run.launchers import slurm
from tests.thorough import first_of

HERE = {"MASTER_ADDR": "192.0.2.7", "MASTER_PORT": "29512"}
THERE = {"MASTER_ADDR": "192.0.2.200", "MASTER_PORT": "29512"}
NONE = Absent(absent="none")
SLURM = {
    "SLURM_JOB_ID": "7",
    "SLURM_NTASKS": "4",
    "SLURM_PROCID": "1",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "0",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_NUM_NODES": "1",
    "SLURM_STEP_TASKS_PER_NODE": "4",
}
RANK_1 = {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}
ON_TWO_NODES = {"SLURM_JOB_NUM_NODES": "2", "SLURM_STEP_NUM_NODES": "2"}
LAUNCHERS: dict[str, dict[str, str]] = {
    "none": {},
    "none, to come": {"PET_NPROC_PER_NODE": "4", "OMP_NUM_THREADS": "1"},
    "torchrun": {**TORCHRUN, **HERE, "OMP_NUM_THREADS": "1"},
    "torchrun on two nodes": {
        **TORCHRUN,
        **THERE,
        "RANK": "5",
        "WORLD_SIZE": "8",
        "GROUP_RANK": "1",
        "GROUP_WORLD_SIZE": "2",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    },
    "srun": {**SLURM, **HERE, **RANK_1},
    "srun on two nodes": {
        **SLURM,
        **THERE,
        **ON_TWO_NODES,
        **{"SLURM_NTASKS": "8", "SLURM_STEP_NUM_TASKS": "8", "SLURM_PROCID": "5"},
        **{"SLURM_STEP_TASKS_PER_NODE": "4(x2)", "RANK": "5", "WORLD_SIZE": "8"},
    },
    "a torchrun in each task of srun": {
        **SLURM,
        **THERE,
        **ON_TWO_NODES,
        **TORCHRUN,
        **{"SLURM_NTASKS": "2", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_TASKS_PER_NODE": "1(x2)"},
        **{"MASTER_ADDR": "192.0.2.200", "WORLD_SIZE": "8", "GROUP_WORLD_SIZE": "2"},
    },
    "mpirun": {
        **HERE,
        **RANK_1,
        "OMPI_COMM_WORLD_RANK": "1",
        "OMPI_COMM_WORLD_SIZE": "4",
        "OMPI_COMM_WORLD_LOCAL_RANK": "1",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
    },
    "Intel MPI": {
        **HERE,
        **RANK_1,
        "PMI_RANK": "1",
        "PMI_SIZE": "4",
        "MPI_LOCALRANKID": "1",
        "MPI_LOCALNRANKS": "4",
    },
    "jsrun": {
        **THERE,
        **RANK_1,
        "JSM_NAMESPACE_RANK": "1",
        "JSM_NAMESPACE_SIZE": "4",
        "JSM_NAMESPACE_LOCAL_RANK": "1",
        "JSM_NAMESPACE_LOCAL_SIZE": "4",
    },
    "accelerate": {**TORCHRUN, **HERE, "ACCELERATE_MIXED_PRECISION": "bf16"},
    "deepspeed": {**HERE, **RANK_1, "CROSS_RANK": "0", "CROSS_SIZE": "1", "LOCAL_SIZE": "4"},
    "Kubernetes": {
        **TORCHRUN,
        **THERE,
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "PET_NNODES": "2",
        "PET_NODE_RANK": "1",
        "PET_NPROC_PER_NODE": "4",
        "GROUP_WORLD_SIZE": "2",
        "WORLD_SIZE": "8",
        "RANK": "5",
    },
    # What kubeflow's operator tells a pod of a PyTorchJob whose command is no torchrun.
    "PyTorchJob": {
        **THERE,
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "RANK": "1",
        "WORLD_SIZE": "2",
        "PYTHONUNBUFFERED": "1",
    },
    # ray/train/torch/config.py
    "Ray Train": {
        **THERE,
        **{"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"},
        **{"NODE_RANK": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", "OMP_NUM_THREADS": "1"},
        "ACCELERATE_TORCH_DEVICE": "cuda:1",
    },
    # Its containers start ranks by mpirun, or by torchrun, on hosts called algo-1, algo-2, ...
    "SageMaker": {
        **THERE,
        **{"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8"},
        **{"OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"},
        **{"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"},
        **{"NCCL_SOCKET_IFNAME": "eth0", "NCCL_DEBUG": "WARN", "OMP_NUM_THREADS": "1"},
        **{"SM_HOSTS": '["algo-1", "algo-2"]', "SM_CURRENT_HOST": "algo-2"},
    },
    # As the images of AWS set it: the network is a plugin's, which lies where the linker looks.
    "mpirun with a plugin": {
        **THERE,
        **{"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8"},
        **{"OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"},
        **{"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "OMP_NUM_THREADS": "1"},
        **{"NCCL_NET": "AWS Libfabric", "NCCL_NET_PLUGIN": "/opt/aws-ofi-nccl/libnccl-net.so"},
    },
    "by hand on two hosts": {**THERE, "RANK": "1", "WORLD_SIZE": "2", "NCCL_DEBUG": "WARN"},
}


def gpus(count: int, name: str = "H100", peers: bool = True) -> dict[str, Any]:
    each = {"name": name, "memory_mib": 81559, "mig": "Disabled", "driver": "580.1"}
    each |= {"compute_mode": "Default", "cuda": "13.0", "fabric": "Completed"}
    return {
        "gpus": tuple(
            Gpu.model_validate({**each, "index": number, "uuid": f"GPU-{number}"})
            for number in range(count)
        ),
        "torch": Torch(
            version="2.13.0+cu130",
            folder="torch",
            cuda="13.0",
            hip=None,
            backends=("gloo", "nccl"),
            nccl_built="2.29.7",
            nccl_loaded="2.29.7",
            nccl_library="libnccl.so.2",
            visible_gpus=count,
            without_peer_access=() if peers else tuple(permutations(range(count), 2)),
        ),
    }


ACTIVE = {"state": "4: ACTIVE", "rate": "400 Gb/sec (4X NDR)", "layer": "InfiniBand", "gids": (0,)}
KERNEL, MEMORY, FOLDER = ENVIRONMENT.kernel, ENVIRONMENT.memory, ENVIRONMENT.folder
assert not isinstance(KERNEL, Unknown)
assert not isinstance(MEMORY, Unknown)
assert not isinstance(FOLDER, Unknown)
INTERFACES = ENVIRONMENT.interfaces
assert not isinstance(INTERFACES, Unknown)
UNLIMITED = Limit(soft=None, hard=None)
DOCKER = Interface(
    name="docker0", addresses=("172.17.0.1",), up=True, loopback=False, inner="bridge"
)
HOSTS: dict[str, dict[str, Any]] = {
    "CPUs": {},
    "four GPUs": gpus(4),
    "four consumer GPUs": gpus(4, name="NVIDIA GeForce RTX 4090", peers=False),
    "four consumer GPUs, older": gpus(4, name="NVIDIA GeForce RTX 3090"),
    "a node of a cluster": {
        **gpus(8),
        "infiniband": ("mlx5_0", "mlx5_1"),
        "fabric": tuple(
            Fabric.model_validate({**ACTIVE, "device": f"mlx5_{number}", "port": 1})
            for number in range(2)
        ),
        "kernel": KERNEL.model_copy(update={"numa_nodes": 2, "gpu_direct": ("nvidia_peermem",)}),
        "cpus": Cpus(count=192, affinity=192, quota=NONE),
        "interfaces": (*INTERFACES, DOCKER),
        "folder": FOLDER.model_copy(update={"filesystem": "lustre", "remote": True}),
    },
    "a container": {
        "container": "docker",
        "cpus": Cpus(count=64, affinity=64, quota=8.0),
        "memory": MEMORY.model_copy(update={"limit": 8 * GIB}),
        "limits": Limits(
            open_files=Limit(soft=1048576, hard=1048576),
            locked_memory=Limit(soft=65536, hard=65536),
            processes=UNLIMITED,
            tasks_allowed=4096,
            tasks_used=20,
        ),
    },
    "without torch": {"torch": Absent(absent="torch is not installed")},
}


@pytest.mark.parametrize(("launcher", "host"), list(product(LAUNCHERS, HOSTS)))
def test_a_healthy_environment_gives_no_warning(
    launcher: str, host: str, environment_with: Callable[..., Environment]
) -> None:
    environ = LAUNCHERS[launcher]
    facts = {**HOSTS[host], "planned_ranks": 4 if launcher == "none, to come" else None}
    if address := environ.get("MASTER_ADDR"):
        facts["master"] = Master(
            address=address,
            addresses=(address,),
            loopback=False,
            local=environ["MASTER_ADDR"] == HERE["MASTER_ADDR"],
            answer="not tried" if environ["MASTER_ADDR"] == HERE["MASTER_ADDR"] else "accepted",
        )
    found = findings(environment_with(environ, **facts))
    assert [one.cause for one in found if one.severity != "info"] == []


def test_there_are_at_least_thirty_of_them() -> None:
    assert len(LAUNCHERS) * len(HOSTS) >= 30


ENV = (sys.executable, "-m", "ddpdoctor", "env", "--format", "json")
TO_RANKS = ("-np", "2", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none")
ONE_IS_NOT_TOLD = """
[ "$SLURM_PROCID" = 0 ] && exec "$@"
unset OMP_NUM_THREADS
"$@" --output other.json || :
"""
REAL = {
    "a shell": [*ENV],
    "accelerate": [
        *(sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_machines=1"),
        *("--num_processes=2", "--mixed_precision=no", "--dynamo_backend=no"),
        *("--main_process_port=0", "-m", *ENV[2:]),
    ],
    "torchrun": [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
        *ENV[1:],
    ],
    "mpirun": ["mpirun", *TO_RANKS, *ENV],
    "srun": ["srun", "-n2", "--overlap", "sh", "-c", ONE_IS_NOT_TOLD, "sh", *ENV],
}


@pytest.fixture(scope="module")
def of_slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with slurm.cluster(tmp_path_factory.mktemp("slurm")) as variables:
        yield variables


@pytest.mark.parametrize("launcher", first_of(REAL))
def test_a_rank_of_a_real_launcher_has_no_warning_if_it_is_told_its_threads(
    launcher: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    environ = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    if launcher == "srun":
        if not slurm.is_here():
            pytest.skip("srun needs root here, and the daemons of slurm-wlm")
        environ |= request.getfixturevalue("of_slurm")
    if launcher == "mpirun" and not shutil.which("mpirun"):
        pytest.skip("mpirun is not installed")
    if launcher == "accelerate" and find_spec("accelerate") is None:
        pytest.skip("accelerate is not installed")
    ran = subprocess.run(
        [*REAL[launcher], "--output", "env.json"],
        env={**environ, "OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=ENDLESS,
    )
    assert ran.returncode == 0, ran.stderr
    count = len(os.sched_getaffinity(0))
    if launcher == "srun" and count > 1:
        told = json.loads((tmp_path / "other.json").read_text())
        causes = [one["cause"] for one in told["findings"] if one["severity"] == "warning"]
        assert causes == [f"2 ranks of {count} threads: {2 * count} on {count} CPUs"]
    document = json.loads((tmp_path / "env.json").read_text())
    assert [one for one in document["findings"] if one["severity"] != "info"] == []
    named = {"srun": "srun", "mpirun": "Open MPI", "torchrun": "torchrun", "accelerate": "torchrun"}
    launchers = [one["name"] for one in document["data"]["environment"]["launchers"]]
    assert named.get(launcher) in (launchers or [None])


@pytest.mark.thorough
def test_a_batch_script_that_forgets_srun_is_told_and_its_tasks_are_not(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if not slurm.is_here():
        pytest.skip("sbatch needs root here, and the daemons of slurm-wlm")
    doctor = " ".join([sys.executable, "-m", "ddpdoctor", "env", "--format", "json"])
    script = tmp_path / "job.sh"
    script.write_text(
        f"#!/bin/sh\n{doctor} -o script.json\nsrun sh -c '{doctor} -o $SLURM_PROCID.json'\nexit 0\n"
    )
    environ = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environ |= {"PYTHONPATH": str(QUICK_TORCH), "OMP_NUM_THREADS": "1"}
    subprocess.run(
        ["sbatch", "--wait", "--ntasks=2", f"--chdir={tmp_path}", str(script)],
        env={**environ, **request.getfixturevalue("of_slurm")},
        check=True,
        capture_output=True,
        timeout=ENDLESS,
    )

    def told(name: str) -> list[str]:
        document = json.loads((tmp_path / name).read_text())
        return [one["cause"] for one in document["findings"] if one["code"] == "DDP105"]

    batch = "this is the batch script of a Slurm job of 2 tasks, not one of its tasks"
    assert told("script.json") == [batch]
    assert told("0.json") == told("1.json") == []
