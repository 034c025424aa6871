"""The host's facts are found on a host, or a part of one, that really is that way."""

import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ddpdoctor.environment.facts import cgroup, host, launcher, network, software
from ddpdoctor.environment.facts import variables as names
from ddpdoctor.environment.facts.machine import Machine
from ddpdoctor.environment.model import (
    Absent,
    HostName,
    Master,
    Search,
    Unknown,
)

Child = Callable[..., str]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def groups(root: Path, membership: str, **files: str) -> Machine:
    """A machine with these control groups; `/` in a file's path is written `__`."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(membership)
    for path, text in files.items():
        file = root / "sys/fs/cgroup" / path.replace("__", "/").replace("DOT", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    return Machine({}, root=root)


def test_version_2_limits_of_a_container_are_found(tmp_path: Path) -> None:
    machine = groups(
        tmp_path,
        "0::/\n",
        cpuDOTmax="150000 100000",
        memoryDOTmax="1073741824",
        memoryDOThigh="max",
        memoryDOTcurrent=str((1 << 30) - (50 << 20)),
        memoryDOTstat=f"inactive_file {30 << 20}\nactive_file {30 << 20}\nfile_mapped {10 << 20}",
        pidsDOTmax="100",
        pidsDOTcurrent="7",
    )
    assert cgroup.cpu_quota(machine) == 1.5
    assert cgroup.memory_limit(machine) == 1 << 30
    assert cgroup.tasks(machine) == (100, 7)
    memory = host.memory(machine)
    assert (memory.limit, memory.left) == (1 << 30, 100 << 20)
    assert memory.free == min(memory.available, 100 << 20)


def test_of_task_limits_the_one_with_least_room_counts(tmp_path: Path) -> None:
    machine = groups(
        tmp_path,
        "0::/pod/main\n",
        pod__pidsDOTmax="1000",
        pod__pidsDOTcurrent="990",
        pod__main__pidsDOTmax="100",
        pod__main__pidsDOTcurrent="20",
    )
    assert cgroup.tasks(machine) == (1000, 990)


def test_the_tightest_group_above_us_counts(tmp_path: Path) -> None:
    machine = groups(
        tmp_path,
        "0::/kubepods/pod1/main\n",
        kubepods__cpuDOTmax="400000 100000",
        kubepods__pod1__cpuDOTmax="200000 100000",
        kubepods__pod1__main__cpuDOTmax="max 100000",
        kubepods__pod2__cpuDOTmax="50000 100000",
        kubepods__pod1__memoryDOTmax="max",
    )
    assert cgroup.cpu_quota(machine) == 2
    assert cgroup.memory_limit(machine) is None


def test_version_1_limits_are_found_though_the_path_is_that_of_the_host(tmp_path: Path) -> None:
    machine = groups(
        tmp_path,
        "4:memory:/docker/ab\n3:cpu,cpuacct:/docker/ab\n1:name=systemd:/\n",
        **{
            "cpu,cpuacct__cpuDOTcfs_quota_us": "50000",
            "cpu,cpuacct__cpuDOTcfs_period_us": "100000",
            "memory__memoryDOTlimit_in_bytes": "9223372036854771712",
        },
    )
    assert cgroup.cpu_quota(machine) == 0.5
    assert cgroup.memory_limit(machine) is None


def test_a_group_of_version_1_without_a_quota_has_none(tmp_path: Path) -> None:
    quota = {"cpu__cpuDOTcfs_quota_us": "-1", "cpu__cpuDOTcfs_period_us": "100000"}
    assert cgroup.cpu_quota(groups(tmp_path, "1:cpu:/\n", **quota)) is None


def test_version_2_beside_version_1_is_looked_at_too(tmp_path: Path) -> None:
    membership = "4:memory:/job\n0::/job\n"
    quotas = {"unified__job__cpuDOTmax": "max 100000", "unified__cpuDOTmax": "300000 100000"}
    assert cgroup.cpu_quota(groups(tmp_path, membership, **quotas)) == 3


@pytest.mark.parametrize(
    ("of_task", "of_container", "cpus"),
    [("2,6-7", "0-15", 16), ("0-15", "0-15", 16), ("", "", None)],
)
def test_the_cpus_of_a_container_are_those_of_its_largest_group(
    of_task: str, of_container: str, cpus: int | None, tmp_path: Path
) -> None:
    effective = {
        "task_1__cpusetDOTcpusDOTeffective": of_task,
        "cpusetDOTcpusDOTeffective": of_container,
    }
    assert cgroup.cpuset(groups(tmp_path, "0::/task_1\n", **effective)) == cpus


def test_a_membership_that_cannot_be_read_leaves_the_rest_of_the_cpus_known(
    tmp_path: Path,
) -> None:
    cpus = host.cpus(groups(tmp_path, "nonsense\n"))
    assert isinstance(cpus.allowed, Unknown)
    assert isinstance(cpus.quota, Unknown)
    assert cpus.usable == cpus.affinity


def test_cores_are_told_from_what_hyper_threading_adds(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    cpu = "processor: {}\nmodel name\t: CPU\nphysical id\t: {}\ncore id\t\t: {}\n"
    blocks = (cpu.format(n, n % 2, n % 4 // 2) for n in range(8))
    (tmp_path / "proc/cpuinfo").write_text("\n".join(blocks))
    cpus = host.cpus(Machine({}, root=tmp_path))
    assert (cpus.model, cpus.cores, cpus.sockets) == ("CPU", 4, 2)
    (tmp_path / "proc/cpuinfo").write_text("processor: 0\nBogoMIPS: 50\n")  # as on ARM
    cpus = host.cpus(Machine({}, root=tmp_path))
    assert (cpus.model, cpus.cores, cpus.sockets) == ("", None, None)


def test_this_interpreter_by_another_of_its_names_is_this_one(tmp_path: Path) -> None:
    own = Path(sys.executable)
    there = {"PATH": str(own.parent)}
    assert software.interpreter(Machine({**there, "PYTHON_EXEC": "python3"})) == sys.executable
    (tmp_path / "python").symlink_to(own.resolve())  # the same program in no virtual environment
    other = str(tmp_path / "python")
    assert software.interpreter(Machine({**there, "PYTHON_EXEC": other})) == other


def test_no_control_groups_at_all_limit_nothing(tmp_path: Path) -> None:
    machine = Machine({}, root=tmp_path)
    assert cgroup.cpu_quota(machine) is None
    assert cgroup.tasks(machine) is None


@pytest.fixture
def real_group() -> Iterator[Path]:
    """A control group of this machine that grants half a CPU."""
    for folder, file, text in (
        ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "50000"),
        ("/sys/fs/cgroup", "cpu.max", "50000 100000"),
    ):
        group = Path(folder) / f"ddpdoctor-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / file).write_text(text)
            yield group
            return
        except OSError:
            continue
        finally:
            group.rmdir()
    pytest.skip("may not make a control group with a CPU quota here")


def test_a_real_quota_is_found(real_group: Path, child: Child) -> None:
    code = (
        "import os, pathlib;"
        f"pathlib.Path({str(real_group)!r}, 'cgroup.procs').write_text(str(os.getpid()));"
        "from ddpdoctor.environment.facts import host, machine;"
        "cpus = host.cpus(machine.Machine({})); print(cpus.quota, cpus.usable)"
    )
    assert child(code) == "0.5 1"


def test_cpus_outside_the_affinity_mask_do_not_count(child: Child) -> None:
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "from ddpdoctor.environment.facts import host, machine;"
        "cpus = host.cpus(machine.Machine({})); print(cpus.count, cpus.affinity, cpus.usable)"
    )
    assert child(code) == f"{os.cpu_count()} 1 1"


def test_limits_are_those_of_the_process(child: Child) -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 512));"
        "from ddpdoctor.environment.facts import host, machine;"
        "print(host.limits(machine.Machine({})).open_files)"
    )
    assert child(code) == "soft=256 hard=512"


@needs_root
def test_a_limit_of_processes_counts_for_all_but_root(child: Child) -> None:
    code = (
        "import os, resource, threading\n"
        "from ddpdoctor.environment.facts import host, machine\n"
        "resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))\n"
        "for user in (0, 65534):\n"
        "    os.setuid(user)\n"
        "    try:\n"
        "        threading.Thread(target=print).start()\n"
        "        works = True\n"
        "    except RuntimeError:\n"
        "        works = False\n"
        "    assert host.limits(machine.Machine({})).exempt == works == (user == 0)\n"
    )
    child(code)


@needs_root
def test_a_torch_that_this_user_may_not_read_is_called_that(child: Child) -> None:
    code = (
        "import os, sys, tempfile; from ddpdoctor.environment.facts import software\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    os.chmod(folder, 0o755)\n"
        "    os.mkdir(folder + '/torch', 0o700)\n"
        "    sys.path.insert(0, folder)\n"
        "    assert software._closed() is None\n"
        "    os.seteuid(65534)\n"
        "    assert str(software._closed()) == folder + '/torch'\n"
        "    os.seteuid(0)\n"
        "    os.chmod(folder, 0o700)\n"  # what is in there nobody can say
        "    os.seteuid(65534)\n"
        "    assert software._closed() is None\n"
        "    os.seteuid(0)\n"
    )
    child(code)


@needs_root
def test_a_small_shared_memory_is_measured(child: Child) -> None:
    code = (
        "from ddpdoctor.environment.facts import host, machine;"
        "print(host.shared_memory(machine.Machine({})))"
    )
    mount = "mount -t tmpfs -o size=1m none /dev/shm && exec "
    inside = ("unshare", "--mount", "sh", "-c", f'{mount} "$@"', "sh")
    try:
        child("", *inside)
    except (AssertionError, FileNotFoundError) as error:
        pytest.skip(f"may not mount here: {error}")
    shown = child(code, *inside)
    assert shown == f"size={1 << 20} free={1 << 20} writable=True tried={1 << 20} takes_it=True"


def test_a_machine_without_shared_memory_says_so(tmp_path: Path) -> None:
    assert isinstance(host.shared_memory(Machine({}, root=tmp_path)), Absent)


def test_infiniband_devices_are_listed(tmp_path: Path) -> None:
    assert host.infiniband(Machine({}, root=tmp_path)) == ()
    (tmp_path / "sys/class/infiniband/mlx5_0").mkdir(parents=True)
    assert host.infiniband(Machine({}, root=tmp_path)) == ("mlx5_0",)


def test_the_loopback_interface_is_told_from_the_others() -> None:
    by_name = {one.name: one for one in network.interfaces(Machine({}))}
    assert by_name["lo"].loopback
    assert "127.0.0.1" in by_name["lo"].addresses
    assert not any(one.loopback for name, one in by_name.items() if name != "lo")


def test_a_port_that_is_listened_on_names_the_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        machine = Machine({"MASTER_PORT": str(port)})
        listener = next(one for one in network.listeners(machine) if one.port == port)
        assert f"pid {os.getpid()}" in listener.process
        connected = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
    with connected, accepted:  # the port is in use still, but nobody listens on it
        assert port not in [one.port for one in network.listeners(machine)]


def test_where_the_master_is_and_whether_it_is_us() -> None:
    here = network.master(Machine({"MASTER_ADDR": "localhost"}))
    assert isinstance(here, Master)
    assert here.local
    assert here.loopback
    there = network.master(Machine({"MASTER_ADDR": "192.0.2.200"}))
    assert isinstance(there, Master)
    assert not there.local
    assert not there.loopback
    assert isinstance(network.master(Machine({})), Absent)


def test_a_host_name_that_resolves_to_loopback_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "localhost")
    assert network.hostname(Machine({})).loopback


def test_a_resolver_that_does_not_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(0.5) or [])
    monkeypatch.setattr(network, "_RESOLVER_SECONDS", 0.1)
    host_name = network.hostname(Machine({}))
    assert isinstance(host_name, HostName)
    assert isinstance(host_name.addresses, Unknown)
    assert not host_name.loopback


TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "1",
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
}


@pytest.mark.parametrize(
    ("environ", "launched"),
    [
        ({}, []),
        (TORCHRUN, [("torchrun", 5, 8, 1, 4)]),
        ({"RANK": "0", "WORLD_SIZE": "2"}, []),
        (
            {
                "SLURM_JOB_ID": "7",
                "SLURM_STEP_ID": "0",
                "SLURM_PROCID": "3",
                "SLURM_STEP_NUM_TASKS": "8",
                "SLURM_LOCALID": "3",
                "SLURM_STEP_TASKS_PER_NODE": "4(x2)",
            },
            [("srun", 3, 8, 3, 4)],
        ),
        ({"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, []),  # a batch script
        (
            {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"},
            [("Open MPI", 1, 2, None, None)],
        ),
        ({"PMI_RANK": "1", "PMI_SIZE": "x"}, [("PMI", 1, None, None, None)]),
    ],
)
def test_the_launcher_is_recognised_by_its_variables(
    environ: dict[str, str], launched: list[tuple[object, ...]]
) -> None:
    found = launcher.launchers(Machine(environ))
    assert [(i.name, i.rank, i.size, i.local_rank, i.local_size) for i in found] == launched


def test_surroundings_are_named_though_they_launched_nothing() -> None:
    environ = {"SLURM_JOB_ID": "7", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert launcher.context(Machine(environ)) == ("SLURM job 7", "Kubernetes")


def test_the_installed_libraries_are_asked_about_odd_names_as_long_as_there_is_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environ = {"NCCL_NOVELTY": "1", "GLOO_NOVELTY": "1", "TORCH_DIST_INIT_BARIER": "1"}
    monkeypatch.setattr(names, "_SECONDS", -1.0)
    hurried = names.search(Machine(environ))
    assert isinstance(hurried, Search)
    assert (hurried.present, hurried.absent) == ((), ())
    monkeypatch.setattr(names, "_SECONDS", 600.0)  # other tests may have the cores
    search = names.search(Machine(environ))
    assert isinstance(search, Search)
    assert "libtorch_cpu.so" in search.libraries
    assert search.absent == ("GLOO_NOVELTY", "NCCL_NOVELTY", "TORCH_DIST_INIT_BARIER")


def test_a_name_that_a_library_reads_is_not_called_odd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, source = tmp_path / "libtorch_cpu.so", tmp_path / "rendezvous.py"
    library.write_bytes(b"\x7fELF\0TORCH_NCCL_BRAND_NEW\0GLOO_OTHER_THING\0")
    source.write_text('os.environ.get("TORCH_DIST_BRAND_NEW"); GLOO_OTHER = 1')
    monkeypatch.setattr(names, "_libraries", lambda: iter((library, source)))
    environ = dict.fromkeys(("TORCH_NCCL_BRAND_NEW", "TORCH_DIST_BRAND_NEW", "GLOO_OTHER"), "1")
    search = names.search(Machine(environ))
    assert isinstance(search, Search)
    assert search.present == ("TORCH_DIST_BRAND_NEW", "TORCH_NCCL_BRAND_NEW")
    assert search.absent == ("GLOO_OTHER",)


def test_a_name_that_nobody_reads_is_not_read_where_another_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "libtorch_python.so"
    monkeypatch.setattr(names, "_libraries", lambda: iter((library,)))
    machine = Machine({"NCCL_TIMEOUT": "3600"})
    for content, present in ((b"_DEFAULT_PG_NCCL_TIMEOUT", ()), (b"NCCL_TIMEOUT",) * 2):
        library.write_bytes(b"\x7fELF\0" + content + b"\0")
        search = names.search(machine)
        assert isinstance(search, Search)
        assert search.present == ((present.decode(),) if present else ())
        assert search.absent == ()


def test_nothing_is_searched_where_no_name_is_odd() -> None:
    assert isinstance(names.search(Machine({"NCCL_DEBUG": "INFO", "EDITOR": "vi"})), Absent)


def test_no_odd_machine_keeps_the_other_facts_from_being_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_: Machine) -> None:
        raise ZeroDivisionError("odd machine")

    found = Machine({}).find(broken)
    assert found == Unknown(unknown="ZeroDivisionError: odd machine")
