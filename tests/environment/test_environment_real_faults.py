"""Faults that are really set up, on this machine or in a part of it, and found by the command."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from quick import QUICK_TORCH

from ddpdoctor.environment.facts import folder as folders
from ddpdoctor.environment.facts import gpu, host, kernel, named_files, nccl_file, network
from ddpdoctor.environment.facts.machine import Machine
from ddpdoctor.environment.model import Absent, Clock, Fabric, Folder, Kernel, Unknown
from tests.patience import ENDLESS
from tests.thorough import first_of

GROUPS = Path("/sys/fs/cgroup")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
ENV = [sys.executable, "-m", "ddpdoctor", "env", "--format", "json"]


def without_torch() -> dict[str, str]:
    """The environment of an `env` that is not kept waiting for torch."""
    kept = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    return {**kept, "PYTHONPATH": str(QUICK_TORCH)}


def found(
    *prefix: str, arguments: tuple[str, ...] = (), **environ: str
) -> list[tuple[str, str, str]]:
    """Code, severity and cause of each finding of `ddpdoctor env`, with a stub for a torch."""
    ran = subprocess.run(
        [*prefix, *ENV, *arguments],
        env={**without_torch(), **environ},
        capture_output=True,
        text=True,
        timeout=ENDLESS,
    )
    assert ran.returncode in (0, 1), ran.stderr
    findings = json.loads(ran.stdout)["findings"]
    return [(one["code"], one["severity"], one["cause"]) for one in findings]


@cache
def found_here() -> list[tuple[str, str, str]]:
    """The same of this machine as it is."""
    return found()


def outcome(*prefix: str, code: str, **environ: str) -> str:
    """What a rank that joins says last."""
    ran = subprocess.run(
        [*prefix, sys.executable, "-c", code],
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        timeout=ENDLESS,
    )
    return (ran.stdout + ran.stderr).strip().splitlines()[-1]


JOIN = """
import datetime, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=3))
print("joined")
"""
# As above, and then, in the same process, as a rank that can: torch takes seconds to import.
JOIN_TWICE = """
import datetime, os, torch.distributed as dist
for environ in ({{}}, {own}):
    os.environ.update(environ)
    try:
        dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=3))
        print("joined")
    except Exception:
        print("refused", end=", ")
"""


@needs_root
@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv of util-linux")
def test_a_port_that_only_root_may_have_is_an_error_where_the_rank_may_not() -> None:
    rank_0 = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "80"}
    ordinary = ("setpriv", "--bounding-set", "-net_bind_service")
    said = outcome(*ordinary, code=JOIN, **rank_0)
    assert "EACCES" in said or "ermission denied" in said
    codes = [(code, severity) for code, severity, _ in found(*ordinary, **rank_0)]
    assert ("DDP104", "error") in codes
    codes = [(code, severity) for code, severity, _ in found(**rank_0)]
    assert ("DDP104", "info") in codes


@pytest.mark.thorough
def test_a_rank_without_a_world_size_fails_as_env_says() -> None:
    environ = {"RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517"}
    assert "environment variable WORLD_SIZE expected, but not set" in outcome(code=JOIN, **environ)
    assert ("DDP105", "warning", "RANK and MASTER_ADDR without WORLD_SIZE") in found(**environ)


@pytest.mark.thorough
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


def test_a_port_that_is_taken_fails_as_env_says() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        rank_0 = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        assert "EADDRINUSE" in outcome(code=JOIN, **rank_0)
        told = [severity for code, severity, _ in found(**rank_0) if code == "DDP104"]
        assert "warning" in told
    told = [severity for code, severity, _ in found(**rank_0) if code == "DDP104"]
    assert "warning" not in told


@needs_root
@pytest.mark.skipif(not shutil.which("ip"), reason="needs ip of iproute2")
@pytest.mark.skipif(find_spec("torch") is None, reason="needs torchrun")
@pytest.mark.thorough
def test_torchrun_minds_a_taken_29500_on_several_nodes_alone_as_env_says() -> None:
    listen = "import socket; kept = socket.create_server(('', 29500)); "
    code = listen + ("import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)")
    inside = ("unshare", "--net", "sh", "-c", LO_UP, "sh", sys.executable, "-c", code)
    torchrun = [*inside, sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=1"]
    several = ["--nnodes=2", "--node-rank=0", "--master-addr=127.0.0.1"]

    def runs(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*torchrun, *options, "--no-python", "true"],
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=ENDLESS,
        )

    assert runs().returncode == 0
    assert "EADDRINUSE" in runs(*several).stderr
    told = [(how, cause) for code, how, cause in found(*inside) if code == "DDP104"]
    assert [(how, cause.partition(" taken")[0]) for how, cause in told] == [
        ("info", "port 29500 (torchrun's default) is already")
    ]
    assert "DDP104" not in [code for code, *_ in found(*inside[:6])]


def test_the_command_names_what_is_set_and_not_its_twin() -> None:
    faults = {
        "NCCL_SOKET_IFNAME": "lo",
        "NCCL_BLOCKING_WAIT": "0",
        **{"TORCH_FR_BUFFER_SIZE": "0", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1"},
        "NCCL_P2P_DISABLE": "1",
        **{"OMP_NUM_THREADS": "64", "PET_NPROC_PER_NODE": "64"},
    }
    twins = {
        "NCCL_SOCKET_IFNAME": "lo",
        "TORCH_NCCL_BLOCKING_WAIT": "0",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "NCCL_P2P_DISABLE": "0",
        **{"OMP_NUM_THREADS": "1", "PET_NPROC_PER_NODE": "64"},
    }
    expected = {
        *[("DDP701", "warning"), ("DDP702", "info"), ("DDP704", "warning"), ("DDP705", "info")],
        ("DDP603", "warning"),
    }
    assert expected <= {(code, severity) for code, severity, _ in found(**faults)}
    codes = {code for code, *_ in found(**twins)}
    assert codes.isdisjoint({code for code, _ in expected})


def test_a_torch_that_is_broken_is_named_with_its_words(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("raise OSError('libcudart.so.13: cannot open')")
    told = [cause for code, _, cause in found(PYTHONPATH=str(tmp_path)) if code == "DDP712"]
    installed = find_spec("torch") is not None
    wanted = "and works without" if installed else "is installed, but importing it fails"
    assert len(told) == 1
    assert wanted in told[0]
    assert "DDP712" not in [code for code, *_ in found(PYTHONPATH="")]


@pytest.mark.skipif(find_spec("torch") is None, reason="needs the variables of a real torch")
@pytest.mark.thorough
def test_a_value_at_which_importing_torch_fails_is_told_as_the_cause() -> None:
    for value, fails in (("+nonsense", True), ("+dynamo", False)):
        said = outcome(code="import torch; print('imported')", TORCH_LOGS=value)
        assert (said != "imported") == fails
        told = [one for one in found(PYTHONPATH="", TORCH_LOGS=value) if one[0] == "DDP703"]
        assert len(told) == fails
        assert not told or "fails with TORCH_LOGS=+nonsense, and works without" in told[0][2]


@pytest.mark.skipif(find_spec("torch") is None, reason="needs a torch that can be without NumPy")
@pytest.mark.thorough
def test_objects_fail_without_numpy_as_env_says(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise ModuleNotFoundError('hidden')")
    code = "import torch.distributed as d; d.init_process_group('gloo', store=d.HashStore(), "
    code += "rank=0, world_size=1); d.all_gather_object([None], 1); d.destroy_process_group(); "
    code += "print('joined')"
    for path, ends in ((str(tmp_path), "RuntimeError: Numpy is not available"), ("", "joined")):
        assert ends in outcome(code=code, PYTHONPATH=path)
        told = [how for code, how, _ in found(PYTHONPATH=path) if code == "DDP712"]
        assert told == (["warning"] if path else [])


@pytest.mark.skipif(not shutil.which("mpirun"), reason="needs mpirun")
@pytest.mark.parametrize(
    ("between", "environ", "code"),
    first_of(
        [
            # Once exported they are the same in all ranks.
            ([], {"RANK": "0", "WORLD_SIZE": "2"}, "DDP707"),
            # Two agents, each with a job of its own.
            (
                [
                    *(sys.executable, "-m", "torch.distributed.run"),
                    *("--standalone", "--nproc-per-node=1", "--no-python"),
                ],
                {},
                "DDP114",
            ),
        ]
    ),
)
def test_what_mpirun_and_the_variables_say_of_a_rank_is_compared(
    between: list[str], environ: dict[str, str], code: str, tmp_path: Path
) -> None:
    mpirun = ["mpirun", "-np", "2", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
    doctor = ["env", f"PYTHONPATH={QUICK_TORCH}", *ENV]
    ran = subprocess.run(
        [*mpirun, "sh", "-c", '"$@" -o $OMPI_COMM_WORLD_RANK.json; :', "sh", *between, *doctor],
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **environ},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=ENDLESS,
    )
    told = [
        {one["code"] for one in json.loads((tmp_path / f"{rank}.json").read_text())["findings"]}
        for rank in (0, 1)
    ]
    assert code in told[1], ran.stderr
    if code == "DDP707":
        assert code not in told[0]  # rank 0 is rank 0


@needs_root
def test_a_host_name_of_the_loopback_is_a_warning_on_several_nodes() -> None:
    def inside(address: str) -> tuple[str, ...]:
        hosts = f"file=$(mktemp); echo {address} {os.uname().nodename} > $file;"
        mount = 'mount --bind $file /etc/hosts; rm $file; exec "$@"'
        return ("unshare", "--mount", "sh", "-ec", hosts + mount, "sh")

    several = {"SLURM_JOB_NUM_NODES": "2"}
    wrong = [(code, severity) for code, severity, _ in found(*inside("127.0.1.1"), **several)]
    assert ("DDP708", "warning") in wrong
    assert "DDP708" not in [code for code, *_ in found(*inside("10.77.3.1"), **several)]


# Two ranks, each on a host of its own, by one import of torch: first with a name that leads to the
# loopback, then with one that leads to what the hosts share.
ON_TWO_HOSTS = """
import ctypes, datetime, multiprocessing, os, subprocess, sys, tempfile
from pathlib import Path
import torch, torch.distributed as dist

os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
fork = multiprocessing.get_context("fork")
ADDRESSES = ("10.77.1.1", "10.77.1.2")

def enter_host(own, address):
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.unshare(0x20000 | (0x40000000 if own else 0)) == 0
    if own:
        tell.send_bytes(b"unshared"); tell.recv_bytes()
    hosts = Path(tempfile.mkdtemp(), "hosts")
    hosts.write_text(f"{address} {os.uname().nodename}\\n")
    script = f"mount --make-rprivate /; mount --bind {hosts} /etc/hosts; ip link set lo up; "
    script += f"ip addr replace {ADDRESSES[own]}/24 dev dd{own}; ip link set dd{own} up"
    subprocess.run(["sh", "-ec", script], check=True)

def join(own, port):
    store = dist.TCPStore(ADDRESSES[0], port, 2, own == 0, datetime.timedelta(seconds=30))
    store.set_timeout(datetime.timedelta(seconds=4))
    try:
        dist.init_process_group("gloo", store=store, rank=own, world_size=2,
                                timeout=datetime.timedelta(seconds=4))
        number = torch.ones(1)
        dist.all_reduce(number)
        said = f"sum {number.item():g}"
    except RuntimeError:
        said = "failed"
    try:
        store.set(f"ended {own}", "")
        store.wait(["ended 0", "ended 1"], datetime.timedelta(seconds=30))
    except RuntimeError:
        pass
    return said

for port, wrong in ((29541, True), (29542, False)):
    here, tell = fork.Pipe()
    subprocess.run(["sh", "-ec", "ip link add dd0 type veth peer name dd1"], check=True)
    answers = [fork.Pipe() for _ in ADDRESSES]
    def rank(own):
        enter_host(own, "127.0.1.1" if wrong else ADDRESSES[own])
        answers[own][1].send(join(own, port))
    ranks = [fork.Process(target=rank, args=(own,)) for own in (0, 1)]
    ranks[1].start()
    here.recv_bytes()
    subprocess.run(["ip", "link", "set", "dd1", "netns", str(ranks[1].pid)], check=True)
    here.send_bytes(b"moved")
    ranks[0].start()
    told = [receives.recv() if receives.poll(60) else "nothing" for receives, _ in answers]
    print(*told, sep=", ", end="; ", flush=True)
    for one in ranks:
        one.kill()
        one.join()
    subprocess.run(["ip", "link", "del", "dd0"], check=False, stderr=subprocess.DEVNULL)
"""


@pytest.mark.thorough
@needs_root
@pytest.mark.skipif(not shutil.which("ip"), reason="needs ip of iproute2")
def test_ranks_of_two_hosts_whose_names_lead_to_the_loopback_do_not_meet_as_env_says() -> None:
    inside = ("unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh")
    assert outcome(*inside, code=ON_TWO_HOSTS) == "failed, failed; sum 2, sum 2;"


IMPORT_AND_STAY = "import sys, torch.distributed; print('here', flush=True); sys.stdin.read()"


@pytest.mark.thorough
def test_ranks_for_which_a_control_group_is_too_small_are_killed_as_env_says(
    small_group: Path,
) -> None:
    if Path("/proc/swaps").read_text().count("\n") > 1:
        pytest.skip("what is swapped out does not count")
    joins = f'echo $$ > {small_group}/cgroup.procs; exec "$@"'
    command = ["sh", "-c", joins, "sh", sys.executable, "-c", IMPORT_AND_STAY]

    def killed(number: int) -> int:
        ranks = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(number)
        ]
        for one in ranks:  # all are there at a time, or are gone
            assert one.stdout
            one.stdout.readline()
        for one in ranks:
            one.communicate(timeout=ENDLESS)
        return sum(one.returncode == -signal.SIGKILL for one in ranks)

    assert killed(3) > 0
    assert killed(1) == 0


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
def test_a_folder_that_takes_no_file_is_an_error_where_it_was_named(tmp_path: Path) -> None:
    mounted = (
        *("unshare", "--mount", "sh", "-c"),
        f'mount -t tmpfs -o ro,size=2g none {tmp_path} && cd {tmp_path} && exec "$@"',
        "sh",
    )
    named = found(*mounted, arguments=("--checkpoints", str(tmp_path)))
    assert [severity for code, severity, _ in named if code == "DDP717"] == ["error"]
    assert "DDP717" not in [code for code, *_ in found(*mounted)]


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
    addressed = inside[-2].replace("&& exec", "&& ip addr add 10.77.4.1/24 dev dd0 && exec")
    told = found(*inside[:-2], addressed, "sh", SLURM_JOB_NUM_NODES="2", **environ)
    assert [cause for code, _, cause in told if code == "DDP107"] == [
        "GLOO_SOCKET_IFNAME names 'dd0', which is down or has no link"
    ]


@needs_root
@pytest.mark.skipif(not shutil.which("ip"), reason="needs ip of iproute2")
@pytest.mark.thorough
def test_a_loopback_that_is_down_keeps_ranks_of_one_machine_apart_as_env_says() -> None:
    alone = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29519"}
    down, up = ("unshare", "--net"), ("unshare", "--net", "sh", "-c", LO_UP, "sh")
    assert outcome(*down, code=JOIN, **alone) != "joined"
    assert outcome(*up, code=JOIN, TORCH_CPP_LOG_LEVEL="ERROR", **alone) == "joined"
    told = ("DDP107", "error", "the loopback interface lo is down")
    assert told in found(*down)
    assert told not in found(*up)


LO_UP = 'ip link set lo up && exec "$@"'
USE_ALLOCATOR = """
import os, torch
torch._C._accelerator_setAllocatorSettings(os.environ["PYTORCH_ALLOC_CONF"])
print("taken")
"""


@pytest.mark.parametrize(
    ("name", "bad", "good", "use", "severity"),
    first_of(
        [
            ("PYTORCH_ALLOC_CONF", "garbage", "expandable_segments:True", USE_ALLOCATOR, "info"),
            # A transport by its right name, for which the keys are missing, or that is not here.
            ("GLOO_DEVICE_TRANSPORT", "TCP_TLS", "TCP", JOIN, "error"),
            ("GLOO_DEVICE_TRANSPORT", "IBVERBS", "TCP", JOIN, "error"),
            ("PYTORCH_ALLOC_CONF", "expandable_segments:yes", "max_split_size_mb:64", "", "info"),
        ]
    ),
)
def test_a_value_that_torch_refuses_is_found_by_trying_it(
    name: str, bad: str, good: str, use: str, severity: str
) -> None:
    alone = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29519"}
    quiet = {**alone, "GLOO_SOCKET_IFNAME": "lo", "TORCH_CPP_LOG_LEVEL": "ERROR"}
    if use:
        last = {value: outcome(code=use, **quiet, **{name: value}) for value in (bad, good)}
        assert last[bad] not in ("joined", "taken")
        assert last[good] in ("joined", "taken")
    real = {"PYTHONPATH": ""}
    if find_spec("torch") is None:
        pytest.skip("torch is not installed")
    told = [one for one in found(**real, **{name: bad}) if one[0] == "DDP703"]
    imports = "import torch; print('imported')"
    if use == JOIN or outcome(code=imports, **quiet, **{name: bad}) == "imported":
        assert told == [("DDP703", severity, f"{name}={bad} is refused by torch")]
    else:  # with CUDA torch reads what is meant for its memory as it is imported, and aborts
        ((_, severity, cause),) = told
        assert severity == "error"
        assert f"fails with {name}={bad}, and works without" in cause
    assert "DDP703" not in [code for code, *_ in found(**real, **{name: good})]


@needs_root
@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv of util-linux")
def test_files_that_variables_name_are_tried_as_this_user(tmp_path: Path) -> None:
    (tmp_path / "topology.xml").write_text("<system/>")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)

    def names(**environ: str) -> list[str]:
        return [name for name, _ in named_files.unusable_files(Machine(environ))]

    here, nowhere = f"{tmp_path}/", f"{tmp_path}/nowhere/"
    assert names(TORCH_FR_DUMP_TEMP_FILE=f"{here}fr_", NCCL_DEBUG_FILE="/dev/stderr") == []
    assert names(NCCL_DEBUG_FILE=f"{here}%h.%p", NCCL_TOPO_FILE=f"{here}topology.xml") == []
    assert names(TORCH_FR_DUMP_TEMP_FILE=nowhere) == ["TORCH_FR_DUMP_TEMP_FILE"]
    assert names(NCCL_DEBUG_FILE=f"{nowhere}%h", NCCL_TOPO_FILE=f"{here}no.xml") == [
        "NCCL_DEBUG_FILE",
        "NCCL_TOPO_FILE",
    ]
    assert names(TORCH_FR_DUMP_TEMP_FILE=f"{closed}/fr_") == []
    os.chown(closed, 65534, 65534)
    # Root without the right to do all: what it does not own, it may not enter.
    limited = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")
    told = found(*limited, TORCH_FR_DUMP_TEMP_FILE=f"{closed}/fr_")
    assert [(code, how) for code, how, _ in told if code == "DDP703"] == [("DDP703", "warning")]


@needs_root
@pytest.mark.skipif(not shutil.which("ip"), reason="needs ip of iproute2")
def test_an_overlay_network_is_told_from_a_card(tmp_path: Path) -> None:
    """A real one, and as the kernel shows those for which there is no driver here."""
    script = (
        "mount -t sysfs none /sys; ip link add dd0 type veth peer name dd1; ip link set dd0 up;"
        "ip addr add 10.77.3.1/24 dev dd0; ip link add vx0 type vxlan id 7 dstport 4789 dev dd0;"
        'ip link set vx0 up; ip addr add 10.77.4.1/24 dev vx0; exec "$@"'
    )
    code = (
        "from ddpdoctor.environment.facts.machine import Machine as m;"
        "from ddpdoctor.environment.facts.network import interfaces as i;"
        "print({one.name: one.inner for one in i(m({})) if one.name != 'lo'})"
    )
    inside = ("unshare", "--net", "--mount", "sh", "-ec", script, "sh")
    assert outcome(*inside, code=code) == "{'dd0': '', 'dd1': '', 'vx0': 'tunnel'}"
    for name, kind, inner in (
        ("wg0", "65534", "tunnel"),
        ("eth0", "1", ""),
        ("gre1", "778", "tunnel"),
    ):
        device = tmp_path / name
        device.mkdir()
        (device / "type").write_text(f"{kind}\n")
        assert network._inner(device) == inner


IN_A_NAMESPACE = ("unshare", "--net", "--mount", "sh", "-ec")
AWAY = (
    "ip link set lo up; ip link add dd0 type veth peer name dd1; ip link set dd0 up;"
    "ip link set dd1 up; ip addr add 10.77.1.1/24 dev dd0;"
    "ip neigh add 10.77.1.2 lladdr 02:00:00:00:00:09 dev dd0;"
)
needs_ip = pytest.mark.skipif(not shutil.which("ip"), reason="needs ip of iproute2")


@needs_root
@needs_ip
@pytest.mark.parametrize(
    ("setup", "address", "severity"),
    first_of(
        [
            # Nobody has that hardware address: as behind a firewall that drops.
            ("", "10.77.1.2", "warning"),
            ("ip route add unreachable 10.78.0.0/24;", "10.78.0.1", "error"),
            ("sysctl -qw net.ipv6.conf.all.disable_ipv6=1;", "2001:db8::1", "error"),
        ]
    ),
)
def test_a_master_that_cannot_be_reached_is_told_with_what_is_in_the_way(
    setup: str, address: str, severity: str
) -> None:
    inside = (*IN_A_NAMESPACE, f'{AWAY} {setup} exec "$@"', "sh")
    rank_1 = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": address, "MASTER_PORT": "29519"}
    own = {**rank_1, "MASTER_ADDR": "10.77.1.1", "RANK": "0", "WORLD_SIZE": "1"}
    joins = JOIN_TWICE.format(own=own)
    assert outcome(*inside, code=joins, TORCH_CPP_LOG_LEVEL="FATAL", **rank_1) == "refused, joined"
    told = [(code, how) for code, how, _ in found(*inside, **rank_1) if code == "DDP108"]
    assert told == [("DDP108", severity)]
    assert "DDP108" not in [code for code, *_ in found(*inside, **own)]


@needs_root
@needs_ip
def test_a_master_that_listens_or_refuses_is_told_apart() -> None:
    # Two hosts: the second one in a namespace of its own, with one listener.
    listen = "import socket; socket.create_server(('', 29519)).accept()"
    inside = (
        *IN_A_NAMESPACE,
        "ip link set lo up; ip link add dd0 type veth peer name dd1;"
        "ip addr add 10.77.1.1/24 dev dd0; ip link set dd0 up;"
        f"unshare --net {sys.executable} -c \"{listen}\" & other=$!; trap 'kill $other' EXIT;"
        # Before it has left, its namespace is ours, and the address would be one of our own.
        'until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do'
        " sleep 0.05; done; ip link set dd1 netns $other; nsenter -t $other -n sh -c"
        " 'ip link set lo up; ip link set dd1 up; ip addr add 10.77.1.2/24 dev dd1';"
        "until nsenter -t $other -n ss -tln | grep -q 29519; do sleep 0.05; done;"
        'code=0; "$@" || code=$?; exit $code',
        "sh",
    )
    there = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "10.77.1.2", "MASTER_PORT": "29519"}
    assert "DDP108" not in [code for code, *_ in found(*inside, **there)]
    refused = found(*inside, **{**there, "MASTER_PORT": "29520"})
    assert [severity for code, severity, _ in refused if code == "DDP108"] == ["info"]
    hosting = found(*inside, **{**there, "MASTER_PORT": "29520", "RANK": "0"})
    assert [severity for code, severity, _ in hosting if code == "DDP108"] == ["warning"]


@needs_root
@needs_ip
def test_a_name_that_leads_to_a_bridge_is_told_where_the_job_has_several_nodes() -> None:
    host = os.uname().nodename
    inside = (
        *IN_A_NAMESPACE,
        "mount -t sysfs none /sys; ip link set lo up;"
        "ip link add br9 type bridge; ip link set br9 up;"
        "ip addr add 10.77.2.1/24 dev br9; hosts=$(mktemp);"
        f"echo 10.77.2.1 {host} > $hosts; mount --bind $hosts /etc/hosts; rm $hosts;"
        'exec "$@"',
        "sh",
    )
    several = {"SLURM_JOB_NUM_NODES": "2"}
    causes = [cause for code, _, cause in found(*inside, **several) if code == "DDP107"]
    assert causes == ["this host's name leads to br9, a bridge, on several nodes"]
    assert "DDP107" not in [code for code, *_ in found(*inside)]


@needs_root
@pytest.mark.thorough
def test_a_shared_memory_that_may_not_be_written_is_an_error_and_a_worker_fails() -> None:
    inside = (
        *IN_A_NAMESPACE,
        'mount -t tmpfs -o ro,size=1g none /dev/shm; exec "$@"',
        "sh",
    )
    share = "import torch; torch.ones(9).share_memory_(); print('shared')"
    assert outcome(*inside, code=share) != "shared"
    codes = [(code, severity) for code, severity, _ in found(*inside)]
    assert ("DDP604", "error") in codes
    assert outcome(code=share) == "shared"
    assert "DDP604" not in [code for code, *_ in found_here()]


@needs_root
@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv of util-linux")
@pytest.mark.parametrize(
    ("limited", "code", "cause"),
    [
        (("prlimit", "--nofile=200:200"), "DDP711", "this process may open 200 files only"),
        (("prlimit", f"--fsize={8 << 20}"), "DDP604", "and takes no file of 32 MiB"),
        # Root's processes are never too many; nobody else may read all checkouts.
        (
            (
                *("setpriv", "--reuid=65534", "--inh-caps=+dac_read_search"),
                *("--ambient-caps=+dac_read_search", "prlimit", "--nproc=40:40"),
            ),
            "DDP711",
            "this user may have 40 processes and threads, all together",
        ),
    ],
)
def test_a_limit_is_told(limited: tuple[str, ...], code: str, cause: str) -> None:
    (told,) = (told for one, _, told in found(*limited) if one == code)
    assert told.endswith(cause)
    assert code not in [one for one, *_ in found_here()]


@needs_root
def test_a_file_of_nccl_is_judged_as_the_environment_is() -> None:
    def inside(text: str) -> tuple[str, ...]:
        write = f"file=$(mktemp); printf '{text}' > $file; touch /etc/nccl.conf;"
        return (*IN_A_NAMESPACE, f"{write} mount --bind $file /etc/nccl.conf; {LO_UP}", "sh")

    before = Path("/etc/nccl.conf").exists()
    try:
        told = found(*inside("NCCL_IB_TIMEOUT=40\\nNCCL_DEBGU=INFO\\n# NCCL_ALGO=Ring\\n"))
        causes = {code: cause for code, _, cause in told}
        assert causes["DDP703"] == "NCCL_IB_TIMEOUT=40 is out of range"
        assert causes["DDP701"].startswith("NCCL_DEBGU=INFO")
        clean = found(*inside("NCCL_IB_TIMEOUT=22\\nNCCL_CROSS_NIC=1\\n"))
        assert [code for code, severity, _ in clean if severity != "info"] == []
    finally:
        if not before:
            Path("/etc/nccl.conf").unlink(missing_ok=True)


def test_the_files_of_nccl_are_read_in_its_order(tmp_path: Path) -> None:
    own, host_wide = tmp_path / "own.conf", tmp_path / "etc/nccl.conf"
    host_wide.parent.mkdir()
    own.write_text("NCCL_ALGO=Ring\n")
    host_wide.write_text("# all\nNCCL_ALGO=Tree\n\nNCCL_PROTO = LL\nNCCL_NET_PLUGIN=a=b")
    read = nccl_file.settings(Machine({"NCCL_CONF_FILE": str(own)}, root=tmp_path))
    assert [(one.line, one.name, one.value) for one in read] == [
        (1, "NCCL_ALGO", "Ring"),
        (2, "NCCL_ALGO", "Tree"),
        (4, "NCCL_PROTO ", " LL"),
        (5, "NCCL_NET_PLUGIN", "a=b"),
    ]
    assert nccl_file.settings(Machine({"NCCL_CONF_FILE": "/nowhere"}, root=tmp_path / "a")) == ()


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


def with_gpus(folder: Path) -> Machine:
    tool = folder / "nvidia-smi"
    tool.write_text(SMI)
    tool.chmod(0o755)
    return Machine({"PATH": f"{folder}:/usr/bin:/bin"}, root=folder)


def test_the_kernels_log_is_searched_for_what_the_driver_said(tmp_path: Path) -> None:
    machine = with_gpus(tmp_path)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kmsg").write_text(
        "6,1,5,-;usb 1-1: new device\n"
        "4,2,6,-;NVRM: Xid (PCI:0000:17:00): 79, pid=7, GPU has fallen off the bus.\n"
    )
    assert gpu.xids(machine) == (
        "NVRM: Xid (PCI:0000:17:00): 79, pid=7, GPU has fallen off the bus.",
    )
    assert isinstance(gpu.xids(Machine({"PATH": ""}, root=tmp_path)), Absent)


@needs_root
def test_the_log_of_this_kernel_is_read_to_its_end(tmp_path: Path) -> None:
    if not os.access("/dev/kmsg", os.R_OK):
        pytest.skip("there is no log here")
    machine = with_gpus(tmp_path)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kmsg").symlink_to("/dev/kmsg")
    assert gpu.xids(machine) == ()


def bridge(folder: Path, name: str, space: bytes) -> None:
    device = folder / "sys/bus/pci/devices" / name
    device.mkdir(parents=True)
    (device / "class").write_text("0x060400\n")
    (device / "config").write_bytes(space)


def capabilities(*of: tuple[int, int]) -> bytes:
    """The space of a PCI Express device: extended capabilities and a word of control of each."""
    space = bytearray(4096)
    for number, (kind, control) in enumerate(of):
        at = 256 + 16 * number
        follows = 0 if number == len(of) - 1 else at + 16
        space[at : at + 4] = (kind | 1 << 16 | follows << 20).to_bytes(4, "little")
        space[at + 6 : at + 8] = control.to_bytes(2, "little")
    return bytes(space)


def test_bridges_that_send_traffic_to_the_cpu_are_found_by_their_own_register(
    tmp_path: Path,
) -> None:
    machine = with_gpus(tmp_path)
    bridge(tmp_path, "0000:17:00.0", capabilities((0x0001, 0xFFFF), (0x000D, 0x001D)))
    bridge(tmp_path, "0000:18:00.0", capabilities((0x000D, 0x001C)))
    bridge(tmp_path, "0000:19:00.0", capabilities((0x0001, 0xFFFF)))
    assert gpu.redirecting_bridges(machine) == ("0000:17:00.0",)
    bridge(tmp_path, "0000:20:00.0", bytes(64))  # what others than root may read
    refused = machine.find(gpu.redirecting_bridges)
    assert isinstance(refused, Unknown)
    assert "root" in refused.unknown


def test_the_bridges_of_this_machine_can_be_read(tmp_path: Path) -> None:
    machine = Machine(with_gpus(tmp_path).environ)
    assert not isinstance(machine.find(gpu.redirecting_bridges), Absent)


def test_fabric_ports_are_read_with_state_and_rate(tmp_path: Path) -> None:
    for number, state in (("1", "4: ACTIVE"), ("2", "1: DOWN")):
        port = tmp_path / "sys/class/infiniband/mlx5_0/ports" / number
        port.mkdir(parents=True)
        for name, text in (("state", state), ("rate", "200 Gb/sec"), ("link_layer", "Ethernet")):
            (port / name).write_text(f"{text}\n")
        (port / "gids").mkdir()
        for index, gid in enumerate(("fe80:0000::1", "0000:0000:0000:0000:0000:0000:0000:0000")):
            (port / "gids" / str(index)).write_text(f"{gid}\n")
    ports = host.fabric(Machine({}, root=tmp_path))
    shared = {"device": "mlx5_0", "rate": "200 Gb/sec", "layer": "Ethernet", "gids": (0,)}
    assert ports == (
        Fabric.model_validate({**shared, "port": 1, "state": "4: ACTIVE"}),
        Fabric.model_validate({**shared, "port": 2, "state": "1: DOWN"}),
    )


SMI = """#!/bin/sh
case "$*" in
  *fabric.state*) echo "GPU-1, In Progress, 2" ;;
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
    assert (gpus[0].fabric, gpus[0].uncorrected) == ("In Progress", 2)
    lines = gpu.topology(machine)
    assert isinstance(lines, tuple)
    assert lines[0].split() == ["GPU0", "CPU", "Affinity"]
    assert "\x1b" not in "".join(lines)
