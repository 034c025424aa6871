"""Settings of the kernel, and what confines this process."""

from __future__ import annotations

import ctypes
import os
import platform
import re

from ddpdoctor.environment.facts.machine import Machine, NoAnswer
from ddpdoctor.environment.model import Absent, Clock, Kernel

_NET_BIND_SERVICE = 1 << 10
# adjtimex(2): the clock is not synchronised.
_TIME_ERROR = 5
_STA_UNSYNC = 0x40
_SIGNS_OF_CONTAINERS = ((".dockerenv", "docker"), ("run/.containerenv", "podman"))
_IN_GROUPS = re.compile(r"(docker|kubepods|libpod|containerd|lxc)")


def kernel(machine: Machine) -> Kernel:
    """What the kernel says of itself. Raises OSError where there is no /proc."""
    nodes = machine.root / "sys/devices/system/node"
    return Kernel(
        release=platform.release(),
        numa_nodes=max(1, len(list(nodes.glob("node[0-9]*")))),
        numa_balancing=machine.find(lambda m: m.read("proc/sys/kernel/numa_balancing") != "0"),
        ptrace_scope=machine.find(_ptrace_scope),
        lowest_port=machine.find(
            lambda m: int(m.read("proc/sys/net/ipv4/ip_unprivileged_port_start"))
        ),
        outgoing_ports=machine.find(_outgoing_ports),
        privileged=_may_bind_low(machine),
        gpu_direct=_gpu_direct(machine),
    )


def _gpu_direct(machine: Machine) -> tuple[str, ...]:
    modules = machine.root / "sys/module"
    found = [name for name in ("nvidia_peermem", "nv_peer_mem") if (modules / name).is_dir()]
    # The open kernel modules export memory as DMA-BUF; the closed ones have another licence.
    try:
        driver = machine.read("proc/driver/nvidia/version")
    except OSError:
        driver = ""
    return (*found, *(("DMA-BUF",) if "Open Kernel Module" in driver else ()))


def _ptrace_scope(machine: Machine) -> int | Absent:
    try:
        return int(machine.read("proc/sys/kernel/yama/ptrace_scope"))
    except FileNotFoundError:
        return Absent(absent="the kernel has no Yama")


def _outgoing_ports(machine: Machine) -> tuple[int, int]:
    first, last = machine.read("proc/sys/net/ipv4/ip_local_port_range").split()
    return int(first), int(last)


def _may_bind_low(machine: Machine) -> bool:
    for line in machine.read("proc/self/status").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) & _NET_BIND_SERVICE)
    return os.geteuid() == 0


class _Timex(ctypes.Structure):
    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_byte * 256),
    )


def clock(_: Machine) -> Clock:
    """What the kernel knows of its clock's error, by adjtimex(2), which only reads here.

    Raises NoAnswer where the system call is not allowed.
    """
    asked = _Timex()
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(asked))
    if state < 0:
        raise NoAnswer(f"adjtimex: {os.strerror(ctypes.get_errno())}")
    return Clock(
        synchronised=state != _TIME_ERROR and not asked.status & _STA_UNSYNC,
        error_seconds=asked.maxerror / 1e6,
    )


def container(machine: Machine) -> str | Absent:
    """The kind of container that this process is in, by the marks that each kind leaves."""
    if machine.environ.get("KUBERNETES_SERVICE_HOST"):
        return "Kubernetes"
    for name in ("SINGULARITY_NAME", "APPTAINER_NAME"):
        if machine.environ.get(name):
            return name.partition("_")[0].capitalize()
    for path, kind in _SIGNS_OF_CONTAINERS:
        if (machine.root / path).exists():
            return kind
    found = _IN_GROUPS.search(machine.read("proc/self/cgroup"))
    return found[0] if found else Absent(absent="no mark of any container")
