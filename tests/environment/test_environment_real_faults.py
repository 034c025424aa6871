"""Faults that are really set up, on this machine or in a part of it, and found by the command."""

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ddpdoctor.environment.facts import folder as folders
from ddpdoctor.environment.facts import gpu, host, kernel
from ddpdoctor.environment.facts.machine import Machine
from ddpdoctor.environment.model import Absent, Clock, Fabric, Folder, Kernel

GROUPS = Path("/sys/fs/cgroup")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
ENV = [sys.executable, "-m", "ddpdoctor", "env", "--json"]


def found(
    *prefix: str, arguments: tuple[str, ...] = (), **environ: str
) -> list[tuple[str, str, str]]:
    """Code, severity and cause of each finding of a real `ddpdoctor env`."""
    ran = subprocess.run(
        [*prefix, *ENV, *arguments],
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **environ},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode in (0, 1), ran.stderr
    findings = json.loads(ran.stdout)["findings"]
    return [(one["code"], one["severity"], one["cause"]) for one in findings]


def outcome(*prefix: str, code: str, **environ: str) -> str:
    """What a rank that joins says last."""
    ran = subprocess.run(
        [*prefix, sys.executable, "-c", code],
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return (ran.stdout + ran.stderr).strip().splitlines()[-1]


JOIN = """
import datetime, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=3))
print("joined")
"""


@needs_root
@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv of util-linux")
def test_a_port_that_only_root_may_have_is_an_error_where_the_rank_may_not() -> None:
    rank_0 = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "80"}
    ordinary = ("setpriv", "--bounding-set", "-net_bind_service")
    assert "EACCES" in outcome(*ordinary, code=JOIN, **rank_0) or "ermission denied" in outcome(
        *ordinary, code=JOIN, **rank_0
    )
    codes = [(code, severity) for code, severity, _ in found(*ordinary, **rank_0)]
    assert ("DDP104", "error") in codes
    codes = [(code, severity) for code, severity, _ in found(**rank_0)]
    assert ("DDP104", "info") in codes


def test_a_rank_without_a_world_size_fails_as_env_says() -> None:
    environ = {"RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517"}
    assert "environment variable WORLD_SIZE expected, but not set" in outcome(code=JOIN, **environ)
    assert ("DDP105", "warning", "RANK and MASTER_ADDR without WORLD_SIZE") in found(**environ)


def test_a_master_that_does_not_resolve_fails_as_env_says() -> None:
    environ = {
        "RANK": "1",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "nowhere.invalid",
        "MASTER_PORT": "29517",
    }
    assert outcome(code=JOIN, **environ) != "joined"
    causes = [cause for code, _, cause in found(**environ) if code == "DDP108"]
    assert causes == ["MASTER_ADDR=nowhere.invalid does not resolve on this machine"]


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A control group, of either version, with 400 MiB."""
    first = GROUPS / "memory"
    top, limit = (first, "memory.limit_in_bytes") if first.is_dir() else (GROUPS, "memory.max")
    group = top / f"ddpdoctor-test-{uuid.uuid4().hex[:8]}"
    try:
        if top == GROUPS:
            (GROUPS / "cgroup.subtree_control").write_text("+memory")
        group.mkdir()
        (group / limit).write_text(str(400 << 20))
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    yield group
    group.rmdir()


def test_a_control_group_too_small_for_the_ranks_to_come_is_an_error(small_group: Path) -> None:
    inside = ("sh", "-c", f'echo $$ > {small_group}/cgroup.procs; exec "$@"', "sh")
    many = found(*inside, arguments=("--nproc", "8"))
    assert [severity for code, severity, _ in many if code == "DDP711"] == ["error"]
    assert "DDP711" not in [code for code, *_ in found(*inside, arguments=("--nproc", "1"))]


@needs_root
@pytest.mark.skipif(not shutil.which("unshare"), reason="needs unshare of util-linux")
def test_a_folder_on_a_small_disk_is_told_and_one_on_a_large_disk_is_not(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = (
        *("unshare", "--mount", "sh", "-c"),
        f'mount -t tmpfs -o size=8m none {disk} && exec "$@"',
        "sh",
    )
    arguments = ("--checkpoints", str(disk))
    small = found(*mounted, arguments=arguments)
    assert [severity for code, severity, _ in small if code == "DDP717"] == ["warning"]
    assert "DDP717" not in [code for code, *_ in found(arguments=("--checkpoints", "/dev/shm"))]


@needs_root
@pytest.mark.skipif(not shutil.which("ip"), reason="needs ip of iproute2")
def test_an_interface_without_an_address_is_named_in_a_namespace_of_its_own() -> None:
    inside = (
        *("unshare", "--net", "sh", "-c"),
        'ip link set lo up && ip link add dd0 type bridge && exec "$@"',
        "sh",
    )
    environ = {"GLOO_SOCKET_IFNAME": "dd0"}
    join = JOIN.replace('"gloo",', '"gloo", init_method="tcp://127.0.0.1:29519", rank=0,').replace(
        "timeout", "world_size=1, timeout", 1
    )
    assert "Unable to find address for: dd0" in outcome(*inside, code=join, **environ)
    codes = [(code, severity) for code, severity, _ in found(*inside, **environ)]
    assert ("DDP107", "error") in codes


def test_a_folder_is_tried_and_left_as_it_was(tmp_path: Path) -> None:
    tried = folders.folder(Machine({}), tmp_path)
    assert isinstance(tried, Folder)
    assert (tried.replaces, tried.syncs, tried.locks) == (True, True, True)
    assert list(tmp_path.iterdir()) == []


def test_the_file_system_is_that_of_the_longest_mount_point(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    home = tmp_path.parent.resolve()
    (tmp_path / "proc/self/mountinfo").write_text(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        f"2 1 0:5 / {home} rw shared:1 - nfs4 server:/home rw\n"
        "3 1 0:6 / /elsewhere rw - xfs /dev/sdb rw\n"
    )
    tried = folders.folder(Machine({}, root=tmp_path), tmp_path)
    assert (tried.filesystem, tried.remote) == ("nfs4", True)


def test_the_kernel_and_the_clock_of_this_machine_are_found_out() -> None:
    here, clock = kernel.kernel(Machine({})), kernel.clock(Machine({}))
    assert isinstance(here, Kernel)
    assert here.numa_nodes >= 1
    assert here.release == os.uname().release
    assert isinstance(clock, Clock)


@pytest.mark.parametrize(
    ("files", "environ", "kind"),
    [
        ((), {}, None),
        ((".dockerenv",), {}, "docker"),
        (("run/.containerenv",), {}, "podman"),
        ((), {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "Kubernetes"),
        ((), {"APPTAINER_NAME": "image.sif"}, "Apptainer"),
    ],
)
def test_a_container_is_known_by_its_marks(
    files: tuple[str, ...], environ: dict[str, str], kind: str | None, tmp_path: Path
) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/user.slice\n")
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    known = kernel.container(Machine(environ, root=tmp_path))
    assert isinstance(known, Absent) if kind is None else known == kind


def test_fabric_ports_are_read_with_state_and_rate(tmp_path: Path) -> None:
    for number, state in (("1", "4: ACTIVE"), ("2", "1: DOWN")):
        port = tmp_path / "sys/class/infiniband/mlx5_0/ports" / number
        port.mkdir(parents=True)
        for name, text in (("state", state), ("rate", "200 Gb/sec"), ("link_layer", "Ethernet")):
            (port / name).write_text(f"{text}\n")
    ports = host.fabric(Machine({}, root=tmp_path))
    assert ports == (
        Fabric(device="mlx5_0", port=1, state="4: ACTIVE", rate="200 Gb/sec", layer="Ethernet"),
        Fabric(device="mlx5_0", port=2, state="1: DOWN", rate="200 Gb/sec", layer="Ethernet"),
    )


SMI = """#!/bin/sh
case "$*" in
  *query-gpu*) echo "0, NVIDIA H100, GPU-1, 81559, Default, Disabled, 550.54" ;;
  *query-compute-apps*) echo "GPU-1, 4711" ;;
  topo*) printf '\\033[4m\\tGPU0\\tCPU Affinity\\033[0m\\nGPU0\\t X \\t0-31\\n' ;;
  *) echo "| NVIDIA-SMI 550.54   Driver Version: 550.54   CUDA Version: 12.4 |" ;;
esac
"""


def test_what_the_driver_says_of_its_gpus_is_kept(tmp_path: Path) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(SMI)
    tool.chmod(0o755)
    machine = Machine({"PATH": f"{tmp_path}:/usr/bin:/bin"})
    gpus: Any = gpu.gpus(machine)
    assert [(one.name, one.cuda, one.others) for one in gpus] == [("NVIDIA H100", "12.4", (4711,))]
    lines = gpu.topology(machine)
    assert isinstance(lines, tuple)
    assert lines[0].split() == ["GPU0", "CPU", "Affinity"]
    assert "\x1b" not in "".join(lines)
