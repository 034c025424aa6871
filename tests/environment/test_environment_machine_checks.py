"""Launchers, network, devices, limits and libraries: every fault is found, its clean twin not."""

from typing import Any

import pytest
from environment_cases import TORCHRUN, Case, Diagnose, check
from healthy_machine import ENVIRONMENT, GIB
from test_environment_variable_checks import NAMES, PAIRS, VALUES

from ddpdoctor.environment.checks.finding import TITLES
from ddpdoctor.environment.facts.machine import Machine
from ddpdoctor.environment.facts.variables import variables
from ddpdoctor.environment.model import (
    Absent,
    Clock,
    Cpus,
    DriverFailure,
    Fabric,
    FileSetting,
    Gpu,
    HostName,
    Interface,
    Limit,
    Limits,
    Listener,
    Master,
    Memory,
    SharedMemory,
    Torch,
    TorchFailure,
    Unknown,
)

NOTHING = Absent(absent="not here")
UNLIMITED = Limit(soft=None, hard=None)
SRUN = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "4"}
BOUND = {**SRUN, "SLURM_STEP_TASKS_PER_NODE": "4"}
TWO_NODES = {"SLURM_JOB_NUM_NODES": "2"}
FREE = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29512"}
LEAKED = {**FREE, "TORCHELASTIC_USE_AGENT_STORE": "True"}
TAKEN = {"listeners": (Listener(port=29512, process="python (pid 7)"),)}
LOOPBACK_NAME = {"hostname": HostName(name="a", addresses=("127.0.1.1",), loopback=True)}
UNKNOWN_NAME = {"hostname": HostName(name="a", addresses=Unknown(unknown="no"), loopback=False)}


def torch(**changes: Any) -> dict[str, Any]:
    facts = {
        "version": "2.13.0",
        "folder": "torch",
        "cuda": "13.0",
        "hip": None,
        "backends": ("gloo", "nccl"),
        "nccl_built": "2.29.7",
        "nccl_loaded": "2.29.7",
        "nccl_library": "libnccl.so.2",
        "visible_gpus": 4,
    }
    return {"torch": Torch.model_validate({**facts, **changes})}


def limits(**changes: Any) -> dict[str, Any]:
    facts = {
        "open_files": UNLIMITED,
        "locked_memory": UNLIMITED,
        "processes": UNLIMITED,
        "tasks_allowed": NOTHING,
        "tasks_used": None,
    }
    return {"limits": Limits.model_validate({**facts, **changes})}


def shared_memory(size: int, free: int) -> dict[str, Any]:
    return {"shared_memory": SharedMemory(size=size << 20, free=free << 20)}


def memory_left(mib: int) -> dict[str, Any]:
    """In a control group of 8 GiB whose processes have taken the rest."""
    return {"memory": Memory(total=16 * GIB, available=8 * GIB, limit=8 * GIB, left=mib << 20)}


def cpus(count: int, quota: float | Absent) -> dict[str, Any]:
    return {"cpus": Cpus(count=count, affinity=count, quota=quota)}


GPUS = {
    "gpus": tuple(
        Gpu(
            index=index,
            name="H100",
            uuid=f"GPU-{index}",
            memory_mib=81559,
            compute_mode="Default",
            mig="Disabled",
            driver="570",
        )
        for index in range(4)
    ),
    **torch(),
}

LAUNCHERS = [
    Case("DDP105", "error", {"RANK": "4", "WORLD_SIZE": "4"}, TORCHRUN),
    Case("DDP105", "error", {"RANK": "-1", "WORLD_SIZE": "1"}, {"RANK": "0", "WORLD_SIZE": "1"}),
    Case("DDP105", "warning", {"RANK": "0", "WORLD_SIZE": "4"}, TORCHRUN),
    Case("DDP105", "info", {"RANK": "0", "WORLD_SIZE": "4", "LOCAL_RANK": "0"}, TORCHRUN),
    Case("DDP706", "warning", LEAKED, TORCHRUN),
    Case("DDP706", "warning", LEAKED, LEAKED, right_facts=TAKEN),
    Case("DDP706", "warning", LEAKED, {**LEAKED, "MASTER_ADDR": "192.0.2.200"}),
    Case("DDP706", "warning", LEAKED, {**LEAKED, "TORCHELASTIC_USE_AGENT_STORE": "False"}),
    Case("DDP706", "warning", {"TORCHELASTIC_USE_AGENT_STORE": "True"}),
    Case("DDP706", "warning", {"TORCHELASTIC_RUN_ID": "a"}, TORCHRUN),
    Case("DDP104", "warning", FREE, TORCHRUN, facts=TAKEN),
    Case("DDP104", "warning", {**FREE, "RANK": "0"}, {**FREE, "RANK": "1"}, facts=TAKEN),
    Case("DDP104", "warning", FREE, FREE, facts=TAKEN, right_facts={}),
    Case("DDP104", "warning", FREE, {**FREE, "MASTER_ADDR": "192.0.2.200"}, facts=TAKEN),
    Case("DDP104", "info", FREE, {**FREE, "RANK": "0", "WORLD_SIZE": "1"}),
    Case(
        "DDP104",
        "info",
        facts={"listeners": (Listener(port=29500, process="python (pid 7)"),)},
        right_facts=TAKEN,
    ),
    Case("DDP108", "warning", {**FREE, **TWO_NODES}, FREE),
    Case(
        "DDP108",
        "warning",
        wrong={**TORCHRUN, "WORLD_SIZE": "8"},
        right={**TORCHRUN, "WORLD_SIZE": "8", "MASTER_ADDR": "192.0.2.200"},
    ),
    Case(
        "DDP114",
        "warning",
        wrong={**TORCHRUN, **SRUN},
        right={**TORCHRUN, **SRUN, "GROUP_WORLD_SIZE": "4"},
    ),
    Case(
        "DDP114",
        "warning",
        wrong={**TORCHRUN, **SRUN},
        right={**TORCHRUN, **SRUN, "SLURM_STEP_NUM_TASKS": "1", "GROUP_WORLD_SIZE": "2"},
    ),
    Case(
        "DDP707",
        "warning",
        wrong={**SRUN, "RANK": "0", "WORLD_SIZE": "4"},
        right={**SRUN, "RANK": "1", "WORLD_SIZE": "4"},
    ),
    Case(
        "DDP707",
        "warning",
        wrong={**SRUN, "RANK": "1", "WORLD_SIZE": "6"},
        right={**SRUN, "RANK": "9", "WORLD_SIZE": "16"},  # one task per node, which spawns four
    ),
]

NETWORK = [
    Case("DDP107", "error", {"GLOO_SOCKET_IFNAME": "eth7"}, {"GLOO_SOCKET_IFNAME": "eth0"}),
    Case("DDP107", "error", {"GLOO_SOCKET_IFNAME": "eth1"}, {"GLOO_SOCKET_IFNAME": "lo"}),
    Case("DDP107", "error", {"GLOO_SOCKET_IFNAME": "lo, eth0"}, {"GLOO_SOCKET_IFNAME": "lo,eth0"}),
    Case("DDP107", "error", {"NCCL_SOCKET_IFNAME": "ib"}, {"NCCL_SOCKET_IFNAME": "ib,eth"}, GPUS),
    Case("DDP107", "error", {"NCCL_SOCKET_IFNAME": "=eth"}, {"NCCL_SOCKET_IFNAME": "=eth0"}, GPUS),
    Case("DDP107", "error", {"NCCL_SOCKET_IFNAME": "^eth,lo"}, {"NCCL_SOCKET_IFNAME": "^lo"}, GPUS),
    Case("DDP107", "error", {"NCCL_SOCKET_IFNAME": "eth1"}, {"NCCL_SOCKET_IFNAME": "eth0"}, GPUS),
    Case("DDP107", "info", {"NCCL_SOCKET_IFNAME": "ib"}, {"NCCL_SOCKET_IFNAME": "eth"}),
    Case(
        "DDP107",
        "warning",
        wrong={"GLOO_SOCKET_IFNAME": "lo", **TWO_NODES},
        right={"GLOO_SOCKET_IFNAME": "eth0", **TWO_NODES},
    ),
    Case("DDP708", "info", {}, {"GLOO_SOCKET_IFNAME": "eth0"}, LOOPBACK_NAME),
    Case("DDP708", "warning", TWO_NODES, TWO_NODES, LOOPBACK_NAME, right_facts={}),
    Case("DDP708", "info", facts=UNKNOWN_NAME, right_facts={}),
]

DEVICES = [
    Case("DDP713", "warning", {"CUDA_VISIBLE_DEVICES": ""}, facts=GPUS),
    Case("DDP713", "info", {"CUDA_VISIBLE_DEVICES": ""}),
    *(
        Case(
            "DDP713",
            "warning",
            wrong={"CUDA_VISIBLE_DEVICES": wrong},
            right={"CUDA_VISIBLE_DEVICES": right},
            facts=GPUS,
        )
        for wrong, right in (
            ("0,0", "0,1"),
            ("0 1", "0, 1,"),
            ("2,9,1", "3"),
            ("all", "0"),
            ("GPU-a,GPU-a", "GPU-a,GPU-b"),
        )
    ),
    Case(
        "DDP106",
        "warning",
        wrong=TORCHRUN,
        right=TORCHRUN,
        facts=torch(visible_gpus=2),
        right_facts=torch(visible_gpus=4),
    ),
]

HOST = [
    Case(
        "DDP603",
        "warning",
        wrong={**TORCHRUN, "OMP_NUM_THREADS": "4"},
        right={**TORCHRUN, "OMP_NUM_THREADS": "2"},
    ),
    Case(
        "DDP603",
        "warning",
        wrong={"PET_NPROC_PER_NODE": "2", "OMP_NUM_THREADS": "8"},
        right={"OMP_NUM_THREADS": "8"},
    ),
    # Four tasks of a node that nobody has bound, nor told how many threads to start.
    Case(
        "DDP603",
        "warning",
        wrong=BOUND,
        right={**BOUND, "OMP_NUM_THREADS": "2"},
        facts=torch(threads=8, visible_gpus=0),
    ),
    Case(
        "DDP603",
        "warning",
        wrong=BOUND,
        right=BOUND,
        facts=torch(threads=8, visible_gpus=0),
        right_facts=torch(threads=1, visible_gpus=0),  # as it takes by itself under MPI
    ),
    Case("DDP603", "info", BOUND, {}, facts=torch(threads=8)),
    # A shell within srun, from which a launch is to come: it will say how many threads.
    Case(
        "DDP603",
        "warning",
        wrong=BOUND,
        right=BOUND,
        facts=torch(threads=8, visible_gpus=0),
        right_facts={"planned_ranks": 4, **torch(threads=8, visible_gpus=0)},
    ),
    # Four tasks of a node, each bound to CPUs of its own.
    Case(
        "DDP603",
        "warning",
        wrong={**BOUND, "OMP_NUM_THREADS": "8"},
        right={**BOUND, "OMP_NUM_THREADS": "4"},
        facts={"cpus": Cpus(count=16, affinity=4, quota=NOTHING), **torch(threads=4)},
    ),
    # Four ranks in a container that has a quarter of the machine, for all of them together.
    Case(
        "DDP603",
        "warning",
        wrong={**BOUND, "OMP_NUM_THREADS": "8"},
        right={**BOUND, "OMP_NUM_THREADS": "4"},
        facts={"cpus": Cpus(count=64, affinity=16, allowed=16, quota=NOTHING), **torch(threads=4)},
    ),
    Case("DDP603", "info", facts=cpus(64, quota=2.5), right_facts=cpus(64, quota=NOTHING)),
    Case("DDP604", "warning", facts=shared_memory(64, 64), right_facts=shared_memory(1024, 512)),
    Case(
        "DDP711",
        "warning",
        facts=limits(open_files=Limit(soft=256, hard=4096)),
        right_facts=limits(open_files=Limit(soft=1024, hard=4096)),
    ),
    Case(
        "DDP711",
        "warning",
        facts={**limits(locked_memory=Limit(soft=65536, hard=None)), "infiniband": ("mlx5_0",)},
        right_facts=limits(locked_memory=Limit(soft=65536, hard=None)),
    ),
    Case(
        "DDP711",
        "warning",
        facts=limits(tasks_allowed=100, tasks_used=60),
        right_facts=limits(tasks_allowed=1000, tasks_used=60),
    ),
]

SOFTWARE = [
    Case(
        "DDP712",
        "error",
        facts={"torch": TorchFailure(version="2.13.0", error="OSError: libcudart.so.13")},
        right_facts={"torch": Absent(absent="torch is not installed")},
    ),
    Case("DDP710", "warning", facts=torch(nccl_loaded="2.9.8"), right_facts=torch()),
    Case("DDP710", "info", facts=torch(nccl_loaded="2.30.1"), right_facts=torch()),
    Case(
        "DDP710",
        "warning",
        facts={"nccl_packages": ("nvidia-nccl-cu12 2.27.3", "nvidia-nccl-cu13 2.29.7")},
        right_facts={"nccl_packages": ("nvidia-nccl-cu13 2.29.7",)},
    ),
    Case(
        "DDP709",
        "warning",
        wrong={"TORCH_DISTRIBUTED_DEBUG": "detail"},
        right={"TORCH_DISTRIBUTED_DEBUG": "detail"},
        right_facts=torch(version="2.14.0"),
    ),
]

BETWEEN_HOSTS = {"DDP110", "DDP719"}  # tested with `env --compare`
MEASURED = {"DDP720", "DDP721", "DDP722", "DDP723", "DDP724"}  # tested with `probe`
KERNEL = ENVIRONMENT.kernel
FOLDER = ENVIRONMENT.folder
assert not isinstance(KERNEL, Unknown)
assert not isinstance(FOLDER, Unknown)
PORT_80 = {**FREE, "MASTER_PORT": "80"}
GPU = Gpu(
    index=0,
    name="GPU",
    uuid="GPU-1",
    memory_mib=1,
    compute_mode="Default",
    mig="Disabled",
    driver="550.1",
    cuda="12.4",
)
PORT = Fabric(device="mlx5_0", port=1, state="4: ACTIVE", rate="200 Gb/sec", layer="InfiniBand")
DOWN = PORT.model_copy(update={"port": 2, "state": "1: DOWN"})


def gpu(**changes: Any) -> dict[str, Any]:
    return {"gpus": (GPU.model_copy(update=changes),)}


def kernel(**changes: Any) -> dict[str, Any]:
    return {"kernel": KERNEL.model_copy(update=changes)}


def folder(**changes: Any) -> dict[str, Any]:
    return {"folder": FOLDER.model_copy(update=changes)}


ALONE = {"RANK": "0", "WORLD_SIZE": "1"}
BATCH = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4"}
TO_COME = [
    Case("DDP105", "warning", {"RANK": "0"}, TORCHRUN),
    Case(
        "DDP105",
        "warning",
        {"WORLD_SIZE": "1", "RANK": "0"},
        {**FREE, "RANK": "0", "WORLD_SIZE": "1"},
    ),
    Case("DDP105", "warning", {**TORCHRUN, "LOCAL_RANK": "7"}, TORCHRUN),
    Case("DDP105", "info", BATCH, {**BATCH, **SRUN}),
    Case("DDP105", "info", BATCH, {**BATCH, "SLURM_NTASKS": "1"}),
    Case("DDP104", "error", PORT_80, PORT_80, right_facts=kernel(lowest_port=80)),
    Case("DDP104", "error", PORT_80, PORT_80, right_facts=kernel(privileged=True)),
    Case("DDP104", "error", PORT_80, FREE),
    Case(
        "DDP104",
        "info",
        {**FREE, "RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": "40000"},
        {**FREE, "RANK": "1", "WORLD_SIZE": "2"},
    ),
    Case("DDP108", "error", {**FREE, "MASTER_ADDR": "nowhere.invalid"}, FREE),
    Case("DDP703", "warning", {"NCCL_IB_TIMEOUT": "40"}, {"NCCL_IB_TIMEOUT": "22"}),
    Case("DDP703", "warning", {"NCCL_IB_TIMEOUT": "0"}, {"NCCL_IB_TIMEOUT": "31"}),
    Case("DDP703", "warning", {"NCCL_IB_RETRY_CNT": "8"}, {"NCCL_IB_RETRY_CNT": "7"}),
    Case(
        "DDP703",
        "warning",
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "4"},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "3"},
    ),
    Case("DDP714", "error", facts=torch() | gpu(), right_facts=torch() | gpu(cuda="13.1")),
    Case(
        "DDP714",
        "info",
        facts=torch(cuda="12.6") | gpu(),
        right_facts=torch(cuda="12.4") | gpu(),
    ),
    Case("DDP715", "error", facts=gpu(compute_mode="Prohibited"), right_facts=gpu()),
    Case(
        "DDP715",
        "error",
        facts=gpu(compute_mode="Exclusive_Process", others=(7,)),
        right_facts=gpu(compute_mode="Exclusive_Process"),
    ),
    Case("DDP715", "info", facts=gpu(others=(7, 8)), right_facts=gpu()),
    Case("DDP716", "warning", facts={"fabric": (DOWN,)}, right_facts={"fabric": (PORT,)}),
    Case("DDP716", "info", facts={"fabric": (PORT, DOWN)}, right_facts={"fabric": (PORT,)}),
    Case("DDP717", "warning", facts=folder(replaces=False), right_facts=folder()),
    Case("DDP717", "warning", facts=folder(syncs=False), right_facts=folder()),
    Case("DDP717", "warning", facts=folder(free=1 << 20), right_facts=folder()),
    Case(
        "DDP717",
        "error",
        facts=folder(writable=False, chosen=True),
        right_facts=folder(writable=False),
    ),
    Case("DDP717", "info", facts=folder(locks=False), right_facts=folder()),
    Case("DDP718", "info", facts=kernel(ptrace_scope=1), right_facts=kernel()),
    Case(
        "DDP718",
        "info",
        facts=kernel(numa_nodes=2, numa_balancing=True),
        right_facts=kernel(numa_nodes=1, numa_balancing=True),
    ),
    Case("DDP718", "warning", facts=kernel(release="4.18.0-553"), right_facts=kernel()),
    Case(
        "DDP718",
        "info",
        facts=torch(without_peer_access=((0, 1), (1, 0))),
        right_facts=torch(),
    ),
    Case(
        "DDP718",
        "info",
        wrong=TWO_NODES,
        facts={"clock": Clock(synchronised=False, error_seconds=16)},
    ),
    Case(
        "DDP711",
        "error",
        facts={"planned_ranks": 64},
        right_facts={"planned_ranks": 4},
    ),
    Case(
        "DDP711",
        "error",
        facts={"planned_ranks": 4, **memory_left(700)},
        right_facts={"planned_ranks": 4, **memory_left(900)},
    ),
    Case(
        "DDP711",
        "warning",
        facts={"planned_ranks": 64, **limits(tasks_allowed=500, tasks_used=10)},
        right_facts={"planned_ranks": 4, **limits(tasks_allowed=500, tasks_used=10)},
    ),
    Case(
        "DDP603",
        "warning",
        {"OMP_NUM_THREADS": "4"},
        {"OMP_NUM_THREADS": "2"},
        facts={"planned_ranks": 4},
    ),
    Case(
        "DDP106",
        "warning",
        facts={"planned_ranks": 8, **torch()},
        right_facts={"planned_ranks": 4, **torch()},
    ),
]


def interface(name: str, *addresses: str, inner: str = "") -> Interface:
    return Interface.model_validate(
        {"name": name, "addresses": addresses, "up": True, "loopback": False, "inner": inner}
    )


def master(answer: str, *addresses: str) -> dict[str, Any]:
    facts = {"address": "node1", "addresses": addresses, "loopback": False, "local": False}
    return {"master": Master.model_validate({**facts, "answer": answer})}


def interpreter(found: str | Absent) -> dict[str, Any]:
    return {"interpreter": found}


def nccl_file(name: str, value: str, **environ: str) -> dict[str, Any]:
    lines = (FileSetting(file="/etc/nccl.conf", line=3, name=name, value=value),)
    return {"nccl_file": lines, "variables": variables(Machine(environ), lines), **GPUS}


def driver(**changes: Any) -> dict[str, Any]:
    return {**torch(), **gpu(**changes)}


AWAY = {"MASTER_ADDR": "node1", "MASTER_PORT": "29512"}
RANK_0_OF_AWAY = {**AWAY, "RANK": "0", "WORLD_SIZE": "2"}
TO_IB = {"GLOO_SOCKET_IFNAME": "ib0"}
UP_IB = {"interfaces": (interface("ib0", "192.0.2.9"),)}
DOWN_IB = {"interfaces": (UP_IB["interfaces"][0].model_copy(update={"up": False}),)}
TAKES_LITTLE = {
    "shared_memory": SharedMemory(size=1 << 30, free=1 << 30, tried=32 << 20, takes_it=False)
}
V4_ONLY = {"interfaces": (interface("eth0", "192.0.2.7"),)}
BOTH = {"interfaces": (interface("eth0", "192.0.2.7", "2001:db8::7"),)}
INNER = {"interfaces": (interface("br0", "172.17.0.1", inner="bridge"), *V4_ONLY["interfaces"])}
ON_A_BRIDGE = {"hostname": HostName(name="a", addresses=("172.17.0.1",), loopback=False)}
OLD_RTX = GPU.model_copy(
    update={"name": "NVIDIA GeForce RTX 4080 SUPER", "driver": "535.183.01", "cuda": "13.0"}
)
ROCE = PORT.model_copy(update={"layer": "Ethernet", "gids": (0, 1)})
REDIRECTING = {"redirecting": ("0000:17:00.0",), **GPUS}
OF_THE_DRIVER = [
    Case("DDP108", "error", AWAY, AWAY, master("no route"), right_facts=master("accepted")),
    Case("DDP108", "warning", AWAY, AWAY, master("silence"), right_facts=master("accepted")),
    Case("DDP108", "info", AWAY, AWAY, master("refused"), right_facts=master("accepted")),
    *(
        Case("DDP108", "warning", RANK_0_OF_AWAY, right, master("refused"))
        for right in (
            {**RANK_0_OF_AWAY, "RANK": "1"},
            {**RANK_0_OF_AWAY, "TORCHELASTIC_USE_AGENT_STORE": "True"},
            {**RANK_0_OF_AWAY, "KUBERNETES_SERVICE_HOST": "10.0.0.1"},
        )
    ),
    Case(
        "DDP104",
        "error",
        {**FREE, "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "2"},
        {**FREE, "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "1"},
    ),
    Case(
        "DDP703",
        "warning",
        {"PYTHON_EXEC": "pyton"},
        {"PYTHON_EXEC": "python"},
        interpreter(NOTHING),
        right_facts=interpreter("python"),
    ),
    Case(
        "DDP703",
        "info",
        {"PYTHON_EXEC": "/usr/bin/python3"},
        {"PYTHON_EXEC": "python"},
        interpreter("/usr/bin/python3"),
        right_facts=interpreter("python"),
    ),
    Case("DDP107", "warning", {**TO_IB, **TWO_NODES}, {**TO_IB, **TWO_NODES}, DOWN_IB, UP_IB),
    Case("DDP107", "info", TO_IB, TO_IB, DOWN_IB, UP_IB),
    Case(
        "DDP108",
        "error",
        facts=V4_ONLY | master("not tried", "2001:db8::1"),
        right_facts=BOTH | master("not tried", "2001:db8::1"),
    ),
    Case(
        "DDP108",
        "info",
        facts=V4_ONLY | master("not tried", "2001:db8::1", "192.0.2.1"),
        right_facts=V4_ONLY | master("not tried", "192.0.2.1"),
    ),
    Case(
        "DDP107",
        "error",
        {"NCCL_SOCKET_FAMILY": "AF_INET6"},
        {"NCCL_SOCKET_FAMILY": "AF_INET"},
        facts=V4_ONLY | GPUS,
    ),
    Case(
        "DDP107",
        "error",
        {"NCCL_SOCKET_FAMILY": "AF_INET6"},
        {"NCCL_SOCKET_FAMILY": "AF_INET6"},
        facts=V4_ONLY | GPUS,
        right_facts=BOTH | GPUS,
    ),
    Case("DDP107", "warning", TWO_NODES, {}, INNER | ON_A_BRIDGE),
    Case(
        "DDP107",
        "warning",
        TWO_NODES,
        {**TWO_NODES, "GLOO_SOCKET_IFNAME": "eth0"},
        INNER | ON_A_BRIDGE,
    ),
    Case("DDP107", "info", TWO_NODES, TWO_NODES, INNER | GPUS, right_facts=V4_ONLY | GPUS),
    Case(
        "DDP107",
        "info",
        TWO_NODES,
        {**TWO_NODES, "NCCL_SOCKET_IFNAME": "eth0"},
        INNER | GPUS,
    ),
    Case(
        "DDP716",
        "warning",
        {"NCCL_IB_GID_INDEX": "3"},
        {"NCCL_IB_GID_INDEX": "1"},
        facts={"fabric": (ROCE,)},
    ),
    Case(
        "DDP716",
        "info",
        facts={"fabric": (PORT, PORT.model_copy(update={"port": 2, "rate": "25 Gb/sec"}))},
        right_facts={"fabric": (PORT, PORT.model_copy(update={"port": 2}))},
    ),
    Case(
        "DDP718",
        "info",
        facts={"infiniband": ("mlx5_0",), **GPUS},
        right_facts={"infiniband": ("mlx5_0",), **GPUS, **kernel(gpu_direct=("DMA-BUF",))},
    ),
    Case("DDP718", "warning", facts=REDIRECTING, right_facts=GPUS),
    Case(
        "DDP718",
        "warning",
        {},
        {"NCCL_P2P_DISABLE": "1"},
        {**torch(), "gpus": (OLD_RTX, OLD_RTX)},
    ),
    Case("DDP715", "warning", TORCHRUN, {}, driver(mig="Enabled")),
    Case("DDP715", "warning", TORCHRUN, TORCHRUN, driver(mig="Enabled"), right_facts=driver()),
    Case(
        "DDP725",
        "error",
        facts=driver(fabric="In Progress"),
        right_facts=driver(fabric="Completed"),
    ),
    Case("DDP725", "warning", facts=driver(uncorrected=1), right_facts=driver()),
    Case("DDP725", "warning", facts={"xids": ("NVRM: Xid (PCI:0000:17:00): 79",)}, right_facts={}),
    Case("DDP726", "warning", facts=gpu(), right_facts=driver()),
    Case(
        "DDP604",
        "error",
        facts={"shared_memory": SharedMemory(size=1 << 30, free=1 << 30, writable=False)},
        right_facts=TAKES_LITTLE,
    ),
    Case("DDP604", "warning", facts=TAKES_LITTLE, right_facts=shared_memory(1024, 1024)),
    Case(
        "DDP604",
        "info",
        wrong={**BOUND, "SLURM_STEP_TASKS_PER_NODE": "8"},
        right=BOUND,
        facts=shared_memory(1024, 200),
    ),
    Case(
        "DDP711",
        "warning",
        facts=limits(processes=Limit(soft=40, hard=40)),
        right_facts=limits(processes=Limit(soft=4096, hard=4096)),
    ),
    Case(
        "DDP711",
        "warning",
        facts=limits(processes=Limit(soft=40, hard=40)),
        right_facts=limits(processes=Limit(soft=40, hard=40), exempt=True),
    ),
    Case(
        "DDP704",
        "info",
        facts=nccl_file("NCCL_ALGO", "Ring", NCCL_ALGO="Tree"),
        right_facts=nccl_file("NCCL_ALGO", "Ring", NCCL_ALGO="Ring"),
    ),
    Case(
        "DDP109",
        "warning",
        facts=nccl_file("export NCCL_CROSS_NIC", "1"),
        right_facts=nccl_file("NCCL_CROSS_NIC", "1"),
    ),
    Case(
        "DDP109",
        "warning",
        facts=nccl_file("TORCH_NCCL_BLOCKING_WAIT", "1"),
        right_facts=nccl_file("NCCL_CROSS_NIC", "1"),
    ),
    Case(
        "DDP703",
        "warning",
        facts=nccl_file("NCCL_IB_TIMEOUT", "40"),
        right_facts=nccl_file("NCCL_IB_TIMEOUT", "22"),
    ),
    Case(
        "DDP703",
        "warning",
        facts=nccl_file("NCCL_IB_TIMEOUT", "40"),
        right_facts=nccl_file("NCCL_IB_TIMEOUT", "40", NCCL_IB_TIMEOUT="22"),
    ),
]
LO = ENVIRONMENT.interfaces[2] if isinstance(ENVIRONMENT.interfaces, tuple) else None
assert isinstance(LO, Interface)
LO_DOWN = LO.model_copy(update={"up": False, "addresses": ()})
ON_IB = {"fabric": (PORT, DOWN), **GPUS}
OTHER_KIND = GPU.model_copy(update={"index": 1, "name": "slower"})
NO_CUDA = "Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized"
BROKEN = {"gpus": DriverFailure(error="nvidia-smi failed with status 18: Failed to initialize")}


def refused(name: str, **changes: Any) -> dict[str, Any]:
    return torch(refused=((name, "torch's words"),), **changes)


def files(name: str, **facts: Any) -> dict[str, Any]:
    return {"unusable_files": ((name, "there is no folder /a"),), **facts}


THAT_FAILS = [
    Case(
        "DDP107",
        "error",
        facts={"interfaces": (LO_DOWN, *V4_ONLY["interfaces"])},
        right_facts={"interfaces": (LO, *V4_ONLY["interfaces"])},
    ),
    Case("DDP107", "info", {"TP_SOCKET_IFNAME": "eth9"}, {"TP_SOCKET_IFNAME": "eth0"}),
    Case(
        "DDP107",
        "warning",
        {"TP_SOCKET_IFNAME": "eth1", **TWO_NODES},
        {"TP_SOCKET_IFNAME": "eth0", **TWO_NODES},
    ),
    Case("DDP725", "warning", facts=torch() | BROKEN, right_facts=driver()),
    Case(
        "DDP725",
        "error",
        facts=driver(cuda="13.0") | torch(cuda_failure=NO_CUDA),
        right_facts=driver(cuda="13.0"),
    ),
    Case(
        "DDP725",
        "error",
        facts=BROKEN | torch(cuda_failure=NO_CUDA),
        right_facts=torch(cuda_failure="Found no NVIDIA driver on your system"),
    ),
    Case(
        "DDP725",
        "error",
        wrong={},
        right={"CUDA_VISIBLE_DEVICES": ""},
        facts=driver(cuda="13.0")
        | torch(cuda_failure="No CUDA GPUs are available", visible_gpus=0),
    ),
    Case(
        "DDP725",
        "error",
        facts=driver(cuda="13.0") | torch(cuda_failure="The driver is too old"),
        right_facts=driver(cuda="12.0") | torch(cuda_failure="The driver is too old"),
    ),
    Case("DDP726", "warning", facts=torch(backends=("gloo",)), right_facts=torch()),
    Case(
        "DDP713",
        "info",
        {},
        {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
        facts={**torch(cuda="12.4"), "gpus": (GPU, OTHER_KIND)},
    ),
    Case(
        "DDP713",
        "info",
        facts={**torch(cuda="12.4"), "gpus": (GPU, OTHER_KIND)},
        right_facts={**torch(cuda="12.4"), "gpus": (GPU, GPU)},
    ),
    Case("DDP712", "error", facts=torch(backends=()), right_facts=torch()),
    *(
        Case("DDP716", "warning", {"NCCL_IB_HCA": wrong}, {"NCCL_IB_HCA": right}, ON_IB)
        for wrong, right in (
            ("mlx5_9", "mlx5_9,mlx5_0"),
            ("mlx5_0:2", "mlx5_0:1"),
            ("=mlx5", "mlx5"),
            ("^mlx5", "^mlx5_1"),
        )
    ),
    Case("DDP716", "info", {"NCCL_IB_HCA": "mlx5_9"}, facts={"fabric": (PORT,)}),
    Case("DDP704", "error", {"NCCL_NET": "IB"}, {"NCCL_NET": "Socket"}, GPUS),
    Case("DDP704", "error", {"NCCL_NET": "ib"}, {"NCCL_NET": "IB"}, GPUS, right_facts=ON_IB),
    Case(
        "DDP704",
        "error",
        {"NCCL_NET": "IB", "NCCL_IB_DISABLE": "1"},
        {"NCCL_NET": "IB", "NCCL_IB_DISABLE": "0"},
        ON_IB,
    ),
    Case("DDP704", "info", {"NCCL_NET": "IB"}),
    Case("DDP703", "error", {"NCCL_NET": "Sockets"}, {"NCCL_NET": "socket"}, GPUS),
    Case("DDP703", "info", {"NCCL_NET": "Sockets"}),
    Case(
        "DDP703",
        "error",
        {"NCCL_NET": "AWS Libfabric"},
        {"NCCL_NET": "AWS Libfabric", "NCCL_NET_PLUGIN": "ofi"},
        GPUS,
    ),
    Case(
        "DDP703",
        "error",
        {"NCCL_NET": "AWS Libfabric"},
        {"NCCL_NET": "AWS Libfabric"},
        GPUS,
        right_facts={"net_plugins": ("/opt/aws/libnccl-net.so",), **GPUS},
    ),
    Case("DDP704", "error", {"NCCL_COMM_BLOCKING": "0"}, {"NCCL_COMM_BLOCKING": "1"}, GPUS),
    Case(
        "DDP704",
        "error",
        {"NCCL_COMM_BLOCKING": "0"},
        {"NCCL_COMM_BLOCKING": "0", "TORCH_NCCL_USE_COMM_NONBLOCKING": "1"},
        GPUS,
    ),
    Case("DDP704", "info", {"NCCL_COMM_BLOCKING": "0"}),
    Case(
        "DDP703",
        "error",
        {"GLOO_DEVICE_TRANSPORT": "TCP_TLS"},
        {"GLOO_DEVICE_TRANSPORT": "TCP_TLS"},
        refused("GLOO_DEVICE_TRANSPORT"),
        right_facts=torch(),
    ),
    Case(
        "DDP703",
        "error",
        {"PYTORCH_ALLOC_CONF": "expandable_segments:maybe"},
        {"PYTORCH_ALLOC_CONF": "expandable_segments:True"},
        refused("PYTORCH_ALLOC_CONF"),
        right_facts=torch(),
    ),
    Case(
        "DDP703",
        "info",
        {"PYTORCH_ALLOC_CONF": "expandable_segments:maybe"},
        facts=refused("PYTORCH_ALLOC_CONF", visible_gpus=0),
    ),
    Case(
        "DDP703",
        "warning",
        {"TORCH_FR_DUMP_TEMP_FILE": "/a/b"},
        {"TORCH_FR_DUMP_TEMP_FILE": "/a/b"},
        files("TORCH_FR_DUMP_TEMP_FILE"),
        right_facts={},
    ),
    Case("DDP703", "info", {"NCCL_DEBUG_FILE": "/a/b"}, facts=files("NCCL_DEBUG_FILE", **GPUS)),
    Case("DDP703", "error", {"NCCL_GRAPH_FILE": "/a/b"}, facts=files("NCCL_GRAPH_FILE", **GPUS)),
    Case("DDP703", "info", {"NCCL_GRAPH_FILE": "/a/b"}, facts=files("NCCL_GRAPH_FILE")),
]
CASES = [*LAUNCHERS, *NETWORK, *THAT_FAILS, *DEVICES, *HOST, *SOFTWARE, *TO_COME, *OF_THE_DRIVER]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_fault_of_the_machine_or_the_launch_is_named_and_a_sound_one_is_not(
    case: Case, diagnose: Diagnose
) -> None:
    check(case, diagnose)


def test_what_shadows_nccl_is_named(diagnose: Diagnose) -> None:
    old = torch(nccl_loaded="2.9.8", nccl_library="/opt/old/libnccl.so.2")

    def told(**environ: str) -> tuple[list[str], tuple[str, ...]]:
        (one,) = (each for each in diagnose(environ, **old) if each.code == "DDP710")
        return [note for note in one.evidence if "puts it" in note], one.cure.commands

    assert told(LD_LIBRARY_PATH="/usr/lib:/opt/old/") == (
        ["LD_LIBRARY_PATH puts it before torch's own"],
        (),
    )
    assert told(LD_PRELOAD="/opt/old/libnccl.so.2") == (
        ["LD_PRELOAD puts it before torch's own"],
        ("unset LD_PRELOAD",),
    )
    assert told(LD_LIBRARY_PATH="/usr/lib") == ([], ())


def test_the_one_interface_that_leads_out_is_in_the_command(diagnose: Diagnose) -> None:
    def commands(**facts: Any) -> tuple[str, ...]:
        (one,) = (each for each in diagnose(**LOOPBACK_NAME, **facts) if each.code == "DDP708")
        return one.cure.commands

    assert commands() == ("export GLOO_SOCKET_IFNAME=eth0",)
    assert commands(**INNER) == ("export GLOO_SOCKET_IFNAME=eth0",)
    assert commands(interfaces=(*UP_IB["interfaces"], *V4_ONLY["interfaces"])) == ()


def test_every_code_has_a_fault_in_these_tests() -> None:
    assert {case.code for case in (*CASES, *NAMES, *VALUES, *PAIRS)} == (
        TITLES.keys() - BETWEEN_HOSTS - MEASURED
    )


def test_a_launcher_that_may_set_the_threads_is_not_said_to_set_none(diagnose: Diagnose) -> None:
    """One rank of torchrun's, in a pod with 4 of 64 CPUs: it sets them for several ranks only."""

    def notes(environ: dict[str, str]) -> tuple[str, ...]:
        facts = cpus(64, quota=4) | torch(threads=64, visible_gpus=0)
        (one,) = (each for each in diagnose(environ, **facts) if each.severity == "warning")
        assert one.code == "DDP603"
        return one.evidence

    said = "torchrun would set 1; this launcher does not"
    alone = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    assert said not in notes({**TORCHRUN, **alone})
    assert said in notes(BOUND)


def test_a_master_where_srun_was_started_is_called_that(diagnose: Diagnose) -> None:
    def notes(launched_at: str) -> list[str]:
        environ = {**RANK_0_OF_AWAY, "SLURM_LAUNCH_NODE_IPADDR": launched_at}
        found = [one for one in diagnose(environ, **master("refused")) if one.code == "DDP108"]
        return [note for one in found for note in one.evidence if "srun" in note]

    assert notes("node1") == ["it is SLURM_LAUNCH_NODE_IPADDR: where srun runs, not rank 0"]
    assert notes("192.0.2.1") == []


def test_an_interface_that_is_down_is_none_that_nccl_can_use(diagnose: Diagnose) -> None:
    down = Interface(name="ib0", addresses=("192.0.2.9",), up=False, loopback=False)
    up = down.model_copy(update={"up": True})
    environ = {"NCCL_SOCKET_IFNAME": "ib"}
    assert "DDP107" in [one.code for one in diagnose(environ, interfaces=(down,), **GPUS)]
    assert "DDP107" not in [one.code for one in diagnose(environ, interfaces=(up,), **GPUS)]


def test_what_a_file_of_nccl_sets_is_mended_in_that_file(diagnose: Diagnose) -> None:
    typo = next(one for one in diagnose({}, **nccl_file("NCCL_SOKET_NTHREADS", "4")))
    assert typo.cure.commands == (
        "sed -i 's/^NCCL_SOKET_NTHREADS=/NCCL_SOCKET_NTHREADS=/' /etc/nccl.conf",
    )
    value = next(one for one in diagnose({}, **nccl_file("NCCL_IB_TIMEOUT", "40")))
    assert value.cure.commands == ("sed -i '/^NCCL_IB_TIMEOUT=/d' /etc/nccl.conf",)
    assert any("/etc/nccl.conf sets it" in note for note in value.evidence)


def test_a_file_that_nccl_is_told_to_read_and_that_is_not_there_is_named(
    diagnose: Diagnose,
) -> None:
    environ = {"NCCL_CONF_FILE": "~/nccl.conf"}
    assert ("DDP109", "warning") in [(o.code, o.severity) for o in diagnose(environ, **GPUS)]
    there = (FileSetting(file="/a/nccl.conf", line=1, name="NCCL_CROSS_NIC", value="1"),)
    environ = {"NCCL_CONF_FILE": "/a/nccl.conf"}
    assert [o.code for o in diagnose(environ, nccl_file=there, **GPUS)] == []


def test_a_job_on_kubernetes_has_its_variables_from_an_operator(diagnose: Diagnose) -> None:
    environ = {**FREE, "RANK": "0", "WORLD_SIZE": "4", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert [one.severity for one in diagnose(environ)] == ["info"]
