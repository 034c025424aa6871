"""What a driver, a card or another machine's kernel shows, from end to end: it is stood in for.

A tool, a torch, and files of /sys, /proc and /dev, which are mounted for one child alone; all that
`env` does with them is what it does elsewhere.
"""

import os
import platform
import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import stood_in
from own_child import judged, nothing, shell
from quick import QUICK_TORCH

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
Told = list[tuple[str, str, str]]
H100S, RTX_4090S = ("NVIDIA H100",) * 2, ("NVIDIA GeForce RTX 4090",) * 2


@dataclass(frozen=True)
class Host:
    """A machine with two GPUs, sound but for what is said here."""

    driver: dict[str, Any] = field(default_factory=dict)
    torch: dict[str, Any] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)
    ranks: int | None = None
    mounts: str = ""
    """Commands that make it of this one."""

    def judged(self, folder: Path) -> Told:
        tool, package = folder / "driver", folder / "torch"
        stood_in.driver(tool, **self.driver)
        stood_in.torch(package, **self.torch)
        environ = {"PATH": f"{tool}:{os.environ['PATH']}", "PYTHONPATH": str(package)}
        prepare = shell(self.mounts) if self.mounts else nothing
        return judged({**environ, **self.environ}, prepare, self.ranks)


@dataclass(frozen=True)
class Fault:
    """What is told of one machine, and not of its twin."""

    row: str
    """Of the table of checks that are worth having."""
    code: str
    severity: str
    cause: str
    wrong: Host
    right: Host = Host()

    def __str__(self) -> str:
        return f"{self.row} {self.cause}"


SEEN = {"CUDA_VISIBLE_DEVICES": "0,1"}
KINDS = ("NVIDIA A100", "NVIDIA T400")
NO_PEERS = {"peers": False}
OF_THE_DRIVER = [
    Fault(
        *("E001", "DDP714", "error", "driver 550.54 is for CUDA 12.4, torch 2.13.0+cu130 for 13.0"),
        Host({"version": "550.54", "cuda": "12.4"}),
    ),
    Fault(
        *("E005", "DDP726", "warning", "2 GPUs here, and torch 2.13.0+cpu is built for CPUs alone"),
        Host(torch={"cuda": None, "count": 0, "with_nccl": False}),
    ),
    Fault(
        *("E005", "DDP726", "warning", "torch 2.13.0+cu130 is built without NCCL, and GPUs are"),
        Host(torch={"with_nccl": False}),
    ),
    Fault(
        *("E005", "DDP712", "error", "PyTorch 2.13.0+cu130 is built without torch.distributed"),
        Host(torch={"available": False}),
    ),
    Fault(
        *("E050", "DDP106", "warning", "4 ranks on this machine see 2 GPUs"),
        Host(ranks=4),
        Host(ranks=2),
    ),
    Fault(
        *("E051", "DDP713", "warning", "CUDA_VISIBLE_DEVICES=0,7 hides the last 1 of its 2"),
        Host(environ={"CUDA_VISIBLE_DEVICES": "0,7"}),
        Host(environ=SEEN),
    ),
    Fault(
        *("E051", "DDP713", "warning", "CUDA_VISIBLE_DEVICES=0,0 names device 0 twice"),
        Host(environ={"CUDA_VISIBLE_DEVICES": "0,0"}),
        Host(environ=SEEN),
    ),
    Fault(
        *("E051", "DDP713", "info", "GPUs of 2 kinds, and CUDA_DEVICE_ORDER is not PCI_BUS_ID"),
        Host({"names": KINDS}),
        Host({"names": KINDS}, environ={"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}),
    ),
    Fault(
        *("E052", "DDP718", "info", "1 pairs of GPUs have no direct access to each other's memory"),
        Host(torch=NO_PEERS),
    ),
    Fault(
        *("E054", "DDP725", "error", "GPU 0 is not joined to the others: its fabric is 'In Prog"),
        Host({"fabric": "In Progress"}),
    ),
    Fault(
        *("E054", "DDP725", "error", "GPUs are here, and CUDA does not start"),
        Host(torch={"failure": "Error 802: system not yet initialized"}),
    ),
    Fault(
        *("E055", "DDP715", "warning", "GPU 0, 1: MIG is on, and 2 ranks are to share this"),
        Host({"mig": "Enabled"}, ranks=2),
        Host({"mig": "Enabled"}, ranks=1),
    ),
    Fault(
        *("E056", "DDP715", "error", "GPU 0 takes no other process: its compute mode is Exclus"),
        Host({"mode": "Exclusive_Process", "processes": (4711,)}),
        Host({"mode": "Exclusive_Process"}),
    ),
    Fault(
        *("E056", "DDP715", "info", "2 other processes compute on GPU 0"),
        Host({"processes": (4711, 4712)}),
    ),
    Fault(
        *("E057", "DDP725", "warning", "GPU 0 has had 2 uncorrected memory errors"),
        Host({"uncorrected": 2}),
    ),
    Fault(
        *("E058", "DDP718", "warning", "driver 545.29 claims a peer access that the RTX 4090"),
        Host({"names": RTX_4090S, "version": "545.29"}),
        Host({"names": RTX_4090S, "version": "550.40.07"}),
    ),
    Fault(
        *("E058", "DDP718", "warning", "driver 545.29 claims a peer access that the RTX 4090"),
        Host({"names": RTX_4090S, "version": "545.29"}),
        Host({"names": RTX_4090S, "version": "545.29"}, environ={"NCCL_P2P_DISABLE": "1"}),
    ),
    Fault(
        *("E058", "DDP718", "warning", "driver 545.29 claims a peer access that the RTX 4090"),
        Host({"names": RTX_4090S, "version": "545.29"}),
        Host({"names": RTX_4090S, "version": "545.29"}, NO_PEERS),
    ),
    Fault(
        *("E058", "DDP718", "warning", "driver 545.29 claims a peer access that the RTX 4090"),
        Host({"names": RTX_4090S, "version": "545.29"}),
        Host({"names": RTX_4090S[:1], "version": "545.29"}),
    ),
]


def in_sys(of_class: str) -> str:
    """A /sys/class that has that."""
    return f"mount -t tmpfs none /sys/class; mkdir /sys/class/net; {of_class}"


def port(number: int, state: str, rate: str = "400 Gb/sec (4X NDR)", gids: int = 2) -> str:
    place = f"/sys/class/infiniband/mlx5_0/ports/{number}"
    lines = [f"mkdir -p {place}/gids", f"echo Ethernet > {place}/link_layer"]
    lines += [f"echo '{state}' > {place}/state", f"echo '{rate}' > {place}/rate"]
    lines += [f"echo fe80:0000::{n + 1} > {place}/gids/{n}" for n in range(gids)]
    return "; ".join([*lines, f"echo 0000:0000::0000 > {place}/gids/{gids}"])


def bridge(control: int) -> str:
    """A PCI bridge whose ACS capability has that word of control, in octal bytes."""
    at = "/sys/bus/pci/devices/0000:17:00.0"
    register = rf"\015\000\001\000\000\000\{control:03o}\000"
    return (
        f"mount -t tmpfs none /sys/bus/pci/devices; mkdir {at}; echo 0x060400 > {at}/class;"
        f"echo 0x8086 > {at}/vendor; truncate -s 4096 {at}/config;"
        f"printf '{register}' | dd of={at}/config bs=1 seek=256 conv=notrunc status=none"
    )


def log(text: str) -> str:
    return f"log=$(mktemp); printf '{text}' > $log; mount --bind $log /dev/kmsg; rm $log"


def kernel_with(more: str) -> str:
    return f"mount -t tmpfs none /proc/sys/kernel; {more}"


def numa(nodes: int, balancing: int) -> str:
    place = "/sys/devices/system/node"
    made = " ".join(f"{place}/node{number}" for number in range(nodes))
    there = f"mount -t tmpfs none {place}; mkdir {made}"
    return f"{there}; {kernel_with(f'echo {balancing} > /proc/sys/kernel/numa_balancing')}"


def yama(scope: int) -> str:
    return kernel_with(
        f"mkdir /proc/sys/kernel/yama; echo {scope} > /proc/sys/kernel/yama/ptrace_scope"
    )


ACTIVE, DOWN = "4: ACTIVE", "1: DOWN"
ON_IB = in_sys(port(1, ACTIVE))
PEERMEM = "mount -t tmpfs none /sys/module; mkdir /sys/module/nvidia_peermem"
XID = r"4,2,6,-;NVRM: Xid (PCI:0000:17:00): 79, pid=7, GPU has fallen off the bus.\n"
OF_THE_KERNEL = [
    Fault(
        *("E036", "DDP716", "warning", "port 1 of mlx5_0 is not active: 1: DOWN"),
        Host(mounts=in_sys(port(1, DOWN))),
        Host(mounts=ON_IB),
    ),
    Fault(
        *("E036", "DDP716", "info", "port 2 of mlx5_0 is not active: 1: DOWN"),
        Host(mounts=in_sys(f"{port(1, ACTIVE)}; {port(2, DOWN)}")),
        Host(mounts=in_sys(f"{port(1, ACTIVE)}; {port(2, ACTIVE)}")),
    ),
    Fault(
        *("E036", "DDP716", "info", "active ports have different rates"),
        Host(mounts=in_sys(f"{port(1, ACTIVE)}; {port(2, ACTIVE, '25 Gb/sec (1X EDR)')}")),
        Host(mounts=in_sys(f"{port(1, ACTIVE)}; {port(2, ACTIVE)}")),
    ),
    Fault(
        *("E036", "DDP716", "warning", "NCCL_IB_GID_INDEX=2 is an empty entry on port 1"),
        Host(mounts=ON_IB, environ={"NCCL_IB_GID_INDEX": "2"}),
        Host(mounts=ON_IB, environ={"NCCL_IB_GID_INDEX": "1"}),
    ),
    Fault(
        *("E037", "DDP718", "info", "network cards cannot read GPU memory: no nvidia_peermem"),
        Host(mounts=ON_IB),
        Host(mounts=f"{ON_IB}; {PEERMEM}"),
    ),
    Fault(
        *("E046", "DDP718", "info", "NUMA balancing is on, with 2 NUMA nodes"),
        Host(mounts=numa(2, 1)),
        Host(mounts=numa(2, 0)),
    ),
    Fault(
        *("E046", "DDP718", "info", "NUMA balancing is on, with 2 NUMA nodes"),
        Host(mounts=numa(2, 1)),
        Host(mounts=numa(1, 1)),
    ),
    Fault(
        *("E048", "DDP718", "info", "kernel.yama.ptrace_scope is 1: only parents may look"),
        Host(mounts=yama(1)),
        Host(mounts=yama(0)),
    ),
    Fault(
        *("E053", "DDP718", "warning", "1 PCI bridge with ACS: GPUs meet by way of the CPU"),
        Host(mounts=bridge(0x1D)),
        Host(mounts=bridge(0x1C)),
    ),
    Fault(
        *("E057", "DDP725", "warning", "the kernel's log has 1 fault of GPUs (Xid)"),
        Host(mounts=log(XID)),
        Host(mounts=log(r"6,1,5,-;usb 1-1: new device\n")),
    ),
]


@pytest.mark.parametrize("fault", OF_THE_DRIVER, ids=str)
def test_what_the_driver_or_torch_says_of_gpus_is_judged_from_end_to_end(
    fault: Fault, tmp_path: Path
) -> None:
    check(fault, tmp_path)


@needs_root
@pytest.mark.parametrize("fault", OF_THE_KERNEL, ids=str)
def test_what_the_kernel_says_of_cards_is_judged_from_end_to_end(
    fault: Fault, tmp_path: Path
) -> None:
    check(fault, tmp_path)


def check(fault: Fault, folder: Path) -> None:
    wrong, right = fault.wrong.judged(folder / "wrong"), fault.right.judged(folder / "right")
    is_it = (fault.code, fault.severity)
    assert [one for one in wrong if one[:2] == is_it and one[2].startswith(fault.cause)], wrong
    assert not [one for one in right if one[2].startswith(fault.cause)]
    assert not [one for one in right if one[0] == fault.code and one[1] != "info"]


def test_two_sound_gpus_give_no_warning(tmp_path: Path) -> None:
    told = Host(ranks=2, environ={"OMP_NUM_THREADS": "1"}).judged(tmp_path)
    assert [cause for _, severity, cause in told if severity != "info"] == []


@needs_root
def test_memory_that_cannot_be_locked_is_told_where_there_is_infiniband(tmp_path: Path) -> None:
    def told(locked: int, mounts: str) -> list[str]:
        mount = shell(mounts)

        def prepare() -> None:
            mount()
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (locked, locked))

        found = judged({}, prepare)
        return [cause for code, _, cause in found if "locked memory" in cause and code == "DDP711"]

    assert told(64 << 10, ON_IB) == ["locked memory is limited to 64 KiB, and there is InfiniBand"]
    assert told(64 << 10, "true") == []


@pytest.mark.skipif(not shutil.which("setarch"), reason="needs setarch of util-linux")
def test_a_kernel_that_is_as_old_as_it_says_is_a_warning() -> None:
    """By a personality that Linux has: to programs of old, it calls itself 2.6."""

    def told(*prefix: str) -> list[str]:
        ran = subprocess.run(
            [*prefix, sys.executable, "-m", "ddpdoctor", "env", "--format", "concise"],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(QUICK_TORCH)},
            capture_output=True,
            text=True,
        )
        return [line for line in ran.stdout.splitlines() if "is older than 5.5" in line]

    (old,) = told("setarch", platform.machine(), "--uname-2.6")
    assert "kernel 2.6." in old
    assert told() == []


NCCL = "int ncclGetVersion(int *version) { *version = %d; return 0; }"
# As libtorch_cuda.so of the wheels: where to look stands in it, and LD_LIBRARY_PATH goes before.
CUDA = "int ncclGetVersion(int *); int ask(void) { int v; return ncclGetVersion(&v); }"


def compiled(source: str, to: Path, *options: str) -> Path:
    to.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-shared", "-fPIC", "-xc", "-", "-xnone", "-o", str(to), *options]
    subprocess.run(command, input=source, text=True, check=True)
    return to


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A torch that is linked with NCCL 2.29.7, and an older NCCL in the folder `old`."""
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    folder = tmp_path_factory.mktemp("linked")
    named = "-Wl,-soname,libnccl.so.2"
    own = compiled(NCCL % 22907, folder / "own/libnccl.so.2", named)
    compiled(NCCL % 20908, folder / "old/libnccl.so.2", named)
    compiled(NCCL % 23001, folder / "new/libnccl.so.2", named)
    library = compiled(
        CUDA,
        folder / "libtorch_cuda.so",
        "-Wl,--no-as-needed",
        str(own),
        f"-Wl,-rpath,{own.parent}",
    )
    stood_in.driver(folder / "driver")
    stood_in.torch(folder / "site", library=library)
    return folder


@pytest.mark.parametrize(
    ("variable", "value", "severity", "loaded"),
    [
        ("LD_LIBRARY_PATH", "{}/old", "warning", "2.9.8"),
        ("LD_PRELOAD", "{}/old/libnccl.so.2", "warning", "2.9.8"),
        ("LD_LIBRARY_PATH", "{}/new", "info", "2.30.1"),
        ("LD_LIBRARY_PATH", "{}/own", "", ""),
        ("LD_LIBRARY_PATH", "/usr/lib", "", ""),
        ("LD_PRELOAD", "", "", ""),
    ],
)
def test_the_linker_is_led_to_another_nccl_and_it_is_told(
    variable: str, value: str, severity: str, loaded: str, linked: Path
) -> None:
    told = judged_of(linked, {variable: value.format(linked)})
    found = [(how, cause) for code, how, cause in told if code == "DDP710"]
    expected = (severity, f"torch was built against NCCL 2.29.7, and loads {loaded}")
    assert found == ([expected] if severity else [])


@pytest.mark.parametrize("variable", ["LD_LIBRARY_PATH", "NCCL_NET_PLUGIN"])
def test_a_network_that_a_plugin_may_bring_is_no_finding(variable: str, tmp_path: Path) -> None:
    (tmp_path / "libnccl-net-ofi.so").touch()
    efa = {"NCCL_NET": "AWS Libfabric"}
    told = Host(environ=efa).judged(tmp_path / "alone")
    assert ("DDP703", "error", "NCCL_NET=AWS Libfabric is no network of NCCL's") in told
    told = Host(environ={**efa, variable: str(tmp_path)}).judged(tmp_path / "with")
    assert "DDP703" not in [code for code, *_ in told]


def judged_of(folder: Path, environ: dict[str, str]) -> Told:
    path = f"{folder / 'driver'}:{os.environ['PATH']}"
    return judged({"PATH": path, "PYTHONPATH": str(folder / "site"), **environ})
