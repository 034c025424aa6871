"""Faults that are really set up in a forked child: its mounts, network, limits and variables."""

import ctypes
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from own_child import judged, nothing, shell

from ddpdoctor.environment.facts.machine import Machine
from ddpdoctor.environment.facts.software import nccl_packages
from tests.control_group import ControlGroup, NoControlGroup

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

SEVERAL = {"SLURM_JOB_NUM_NODES": "2"}
RANK_0 = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29519"}


@dataclass(frozen=True)
class Variables:
    """Variables under which that is found, and others under which it is not."""

    code: str
    severity: str
    cause: str
    wrong: dict[str, str]
    right: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join((self.code, *(f"{name}={value}" for name, value in self.wrong.items())))


@pytest.mark.parametrize(
    "case",
    [
        Variables(
            "DDP105",
            "warning",
            "LOCAL_RANK=7 and LOCAL_WORLD_SIZE=4",
            {"LOCAL_RANK": "7", "LOCAL_WORLD_SIZE": "4"},
            {"LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "4"},
        ),
        Variables(
            "DDP105",
            "warning",
            "PET_NODE_RANK=3 and PET_NNODES=2",
            {"PET_NODE_RANK": "3", "PET_NNODES": "2"},
            {"PET_NODE_RANK": "1", "PET_NNODES": "2"},
        ),
        Variables(
            "DDP105",
            "info",
            "this is the batch script of a Slurm job of 4 tasks",
            {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4"},
            {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "1"},
        ),
        Variables("DDP105", "error", "RANK=2 and WORLD_SIZE=2", {**RANK_0, "RANK": "2"}, RANK_0),
        Variables(
            "DDP105",
            "warning",
            "WORLD_SIZE=2, and no launcher is seen",
            RANK_0,
            {**RANK_0, "WORLD_SIZE": "1"},
        ),
        Variables(
            "DDP706",
            "warning",
            "TORCHELASTIC_RUN_ID is set, but torchrun has not started this",
            {"TORCHELASTIC_RUN_ID": "a"},
            {},
        ),
        Variables(
            "DDP706",
            "warning",
            "TORCHELASTIC_USE_AGENT_STORE=True, but no agent hosts a store",
            {**RANK_0, "TORCHELASTIC_USE_AGENT_STORE": "True"},
            {**RANK_0, "TORCHELASTIC_USE_AGENT_STORE": "False"},
        ),
        Variables(
            "DDP104", "error", "MASTER_PORT=0, and 2 ranks", {**RANK_0, "MASTER_PORT": "0"}, RANK_0
        ),
        Variables("DDP104", "info", "torchrun will ignore", {"MASTER_PORT": "29519"}, RANK_0),
        Variables(
            "DDP108", "warning", "MASTER_ADDR=127.0.0.1 is this machine", {**RANK_0, **SEVERAL}
        ),
        Variables(
            "DDP703",
            "warning",
            "PYTHON_EXEC=/nowhere/python is no program here",
            {"PYTHON_EXEC": "/nowhere/python"},
            {"PYTHON_EXEC": sys.executable},
        ),
        Variables(
            "DDP703",
            "info",
            "PYTHON_EXEC=/bin/sh is another interpreter",
            {"PYTHON_EXEC": "/bin/sh"},
            {"PYTHON_EXEC": sys.executable},
        ),
        Variables(
            "DDP107",
            "warning",
            "GLOO_SOCKET_IFNAME=lo keeps to the loopback",
            {**SEVERAL, "GLOO_SOCKET_IFNAME": "lo"},
            {"GLOO_SOCKET_IFNAME": "lo"},
        ),
        Variables(
            "DDP107",
            "info",
            "NCCL_SOCKET_IFNAME=eth99 matches no usable interface",
            {"NCCL_SOCKET_IFNAME": "eth99"},
            {"NCCL_SOCKET_IFNAME": "lo"},
        ),
        Variables(
            "DDP107",
            "info",
            "TP_SOCKET_IFNAME=eth99 is no interface",
            {"TP_SOCKET_IFNAME": "eth99"},
            {"TP_SOCKET_IFNAME": "lo"},
        ),
        Variables(
            "DDP705",
            "info",
            "TORCH_DISTRIBUTED_DEBUG=INFO is meant for debugging",
            {"TORCH_DISTRIBUTED_DEBUG": "INFO"},
            {"TORCH_DISTRIBUTED_DEBUG": "OFF"},
        ),
    ],
    ids=str,
)
def test_variables_are_found_wrong_and_their_twins_are_not(case: Variables) -> None:
    what = (case.code, case.severity)
    assert [one for one in judged(case.wrong) if one[:2] == what and one[2].startswith(case.cause)]
    assert not [one for one in judged(case.right) if one[2].startswith(case.cause)]


ADDRESSED = (
    "ip link add dd0 type veth peer name dd1; ip link set dd0 up; ip link set dd1 up;"
    "ip addr add 10.77.1.1/24 dev dd0;"
)
OF_THE_NEWER = "sysctl -qw net.ipv6.conf.all.disable_ipv6=0; ip addr add 2001:db8::7/64 dev dd0;"


@needs_root
@pytest.mark.parametrize(
    ("environ", "wrong", "right", "told"),
    [
        (
            {"NCCL_SOCKET_FAMILY": "AF_INET6"},
            ADDRESSED,
            ADDRESSED + OF_THE_NEWER,
            ("DDP107", "info", "NCCL_SOCKET_FAMILY=AF_INET6, and no interface has an IPv6"),
        ),
        (
            {},
            "mount -t tmpfs -o size=32m none /dev/shm",
            "mount -t tmpfs -o size=2g none /dev/shm",
            ("DDP604", "warning", "/dev/shm has 32 MiB left of 32"),
        ),
        (
            {"LOCAL_WORLD_SIZE": "8", "LOCAL_RANK": "0"},
            "mount -t tmpfs -o size=100m none /dev/shm",
            "mount -t tmpfs -o size=2g none /dev/shm",
            ("DDP604", "info", "/dev/shm has 100 MiB left"),
        ),
    ],
)
def test_a_network_or_a_mount_is_found_wrong_and_its_twin_is_not(
    environ: dict[str, str], wrong: str, right: str, told: tuple[str, str, str]
) -> None:
    found = [one for one in judged(environ, shell(wrong)) if one[:2] == told[:2]]
    assert [cause for *_, cause in found if cause.startswith(told[2])], found
    twin = judged(environ, shell(right))
    assert not [cause for *_, cause in twin if cause.startswith(told[2])]


def test_a_control_group_with_few_tasks_left_is_told() -> None:
    def causes(tasks: int) -> list[str]:
        try:
            with ControlGroup(memory=2 << 30, tasks=tasks) as group:
                told = judged({}, group.join)
        except NoControlGroup as error:
            pytest.skip(str(error))
        return [cause for code, _, cause in told if code == "DDP711" and "control group" in cause]

    assert [cause.partition(" room ")[0] for cause in causes(40)] == ["the control group has"]
    assert causes(4000) == []


def test_a_quota_of_cpu_time_is_what_threads_are_counted_against() -> None:
    """A control group, of either version, that grants one CPU's time."""
    if (os.cpu_count() or 1) < 2:
        pytest.skip("needs two CPUs")
    top = Path("/sys/fs/cgroup")
    first = (top / "cpu").is_dir()
    group = (top / "cpu" if first else top) / f"ddpdoctor-quota-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    quota, text = ("cpu.cfs_quota_us", "100000") if first else ("cpu.max", "100000 100000")

    def enter() -> None:
        (group / quota).write_text(text)
        (group / "cgroup.procs").write_text("0")

    environ = {"OMP_NUM_THREADS": "2"}
    try:
        granted, free = judged(environ, enter, nproc=1), judged(environ, nproc=1)
    finally:
        group.rmdir()
    says_more = f"os.cpu_count() says {os.cpu_count()}, but this process may use 1"
    expected = {("info", says_more), ("warning", "1 rank of 2 threads: 2 on 1 CPU")}
    assert {one[1:] for one in granted if one[0] == "DDP603"} == expected
    assert [cause for code, _, cause in free if code == "DDP603" and "2 on 1 CPU" in cause] == []


def test_a_rank_that_is_bound_to_one_cpu_is_told_that_cpu_count_says_more() -> None:
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("needs two CPUs")
    bound = judged({}, lambda: os.sched_setaffinity(0, {min(allowed)}))
    assert ("DDP603", "info") in [
        one[:2] for one in bound if one[2].endswith("but this process may use 1")
    ]
    assert not [one for one in judged({}) if one[2].endswith("but this process may use 1")]


def test_two_packages_of_nccl_are_told_and_one_is_not(tmp_path: Path) -> None:
    def with_packages(*names: str) -> list[str]:
        site = tmp_path / str(len(names)) / "site-packages"
        for name in names:
            (site / f"{name}.dist-info").mkdir(parents=True)
        told = judged({}, lambda: sys.path.insert(0, str(site)))
        return [cause for code, _, cause in told if code == "DDP710"]

    assert with_packages("nvidia_nccl_cu12-2.27.3", "nvidia_nccl_cu13-2.28.9")
    here = nccl_packages(Machine({}))
    assert with_packages(*(() if here else ("nvidia_nccl_cu12-2.27.3",))) == []


class _Filter(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("jt", ctypes.c_ubyte),
        ("jf", ctypes.c_ubyte),
        ("k", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.POINTER(_Filter)))


def refuse(call: int, error: int) -> None:
    """Have the kernel refuse a system call of this process, as some file systems do (seccomp)."""
    no_new_privileges, set_seccomp, by_filter = 38, 22, 2
    load, equals, gives = 0x20, 0x15, 0x06
    refused, allowed = 0x00050000, 0x7FFF0000
    rules = (_Filter * 4)(
        _Filter(load, 0, 0, 0),
        _Filter(equals, 0, 1, call),
        _Filter(gives, 0, 0, refused | error),
        _Filter(gives, 0, 0, allowed),
    )
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(
        set_seccomp, by_filter, ctypes.byref(_Program(4, rules)), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "seccomp")


FLOCK, FSYNC, RENAME = 73, 74, 82


@pytest.mark.skipif(platform.machine() != "x86_64", reason="system calls are those of x86_64")
@pytest.mark.parametrize("call", [FLOCK, FSYNC, RENAME])
def test_a_folder_where_the_kernel_refuses_locks_or_replacement_is_told(
    call: int, tmp_path: Path
) -> None:
    def told(prepare: Callable[[], object]) -> list[str]:
        found = judged({}, prepare, checkpoints=tmp_path)
        return [cause for code, _, cause in found if code == "DDP717"]

    not_supported = 95
    refused, twin = told(lambda: refuse(call, not_supported)), told(nothing)
    assert set(refused) - set(twin)
