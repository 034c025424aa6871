"""Names, values and pairs of variables: every fault is found, and its clean twin is not."""

from collections.abc import Callable

import pytest
from environment_cases import TORCHRUN, Case, Diagnose, check
from healthy_machine import ENVIRONMENT

from ddpdoctor.environment.checks import findings
from ddpdoctor.environment.model import (
    Absent,
    Environment,
    Gpu,
    Search,
    Torch,
    TorchFailure,
    Unknown,
)
from ddpdoctor.environment.variables import known

GPU = Gpu(
    index=0, name="H100", uuid="a", memory_mib=9, compute_mode="", mig="Disabled", driver="570"
)
READ_AFTER_ALL = Search(libraries=("plugin.so",), present=("NCCL_TIMEOUT",), absent=())
ABSENT_FROM_NCCL = Search(libraries=("libnccl.so.2",), present=(), absent=("NCCL_NOVELTY",))
PRESENT_IN_NCCL = Search(libraries=("libnccl.so.2",), present=("NCCL_NOVELTY",), absent=())

TORCH = ENVIRONMENT.torch
assert isinstance(TORCH, Torch)
WITH_NCCL = {"torch": TORCH.model_copy(update={"backends": ("gloo", "nccl")})}

NAMES = [
    Case("DDP109", "warning", {"NCCL_TIMEOUT": "3600"}, {"NCCL_IB_TIMEOUT": "22"}),
    Case(
        "DDP109",
        "warning",
        wrong={"NCCL_TIMEOUT": "3600"},
        right={"NCCL_TIMEOUT": "3600"},
        right_facts={"search": READ_AFTER_ALL},
    ),
    Case("DDP109", "warning", {"GLOO_TIMEOUT_SECONDS": "9"}, {"GLOO_LOG_LEVEL": "WARN"}),
    Case("DDP109", "warning", {"NCCL_TREE_THRESHOLD": "0"}, {"NCCL_CROSS_NIC": "1"}),
    Case("DDP109", "warning", {"PET_NPROC": "4"}, {"PET_NPROC_PER_NODE": "4"}),
    Case("DDP109", "info", {"NPROC_PER_NODE": "4"}, {"PET_NPROC_PER_NODE": "4"}),
    Case("DDP701", "warning", {"NCCL_SOKET_IFNAME": "lo"}, {"NCCL_SOCKET_IFNAME": "lo"}),
    Case("DDP701", "warning", {"MASTERPORT": "29512"}, {"MASTER_PORT": "29512"}),
    Case(
        "DDP701",
        "info",
        wrong={"NCCL_NOVELTY": "1"},
        facts={"search": ABSENT_FROM_NCCL},
        right={"NCCL_NOVELTY": "1"},
        right_facts={"search": PRESENT_IN_NCCL},
    ),
    Case("DDP701", "info", {"NCCL_NOVELTY": "1"}, {"NCCL_NET": "1"}),
    Case("DDP702", "info", {"NCCL_BLOCKING_WAIT": "0"}, {"TORCH_NCCL_BLOCKING_WAIT": "0"}),
    Case("DDP702", "info", {"NCCL_ASYNC_ERROR_HANDLING": "1"}),
    Case("DDP702", "info", {"PYTORCH_CUDA_ALLOC_CONF": "a:b"}, {"PYTORCH_ALLOC_CONF": "a:b"}),
    Case("DDP702", "info", {"TORCH_NCCL_AVOID_RECORD_STREAMS": "1"}, {"TORCH_NCCL_NAN_CHECK": "0"}),
    Case("DDP705", "info", {"NCCL_DEBUG": "INFO"}, {"NCCL_DEBUG": "WARN"}),
    Case("DDP705", "info", {"NCCL_P2P_DISABLE": "1"}, {"NCCL_P2P_DISABLE": "0"}),
    Case("DDP705", "info", {"TORCH_NCCL_NAN_CHECK": "1"}, {"TORCH_NCCL_NAN_CHECK": "0"}),
    Case("DDP705", "info", {"TORCH_DISTRIBUTED_DEBUG": "INFO"}, {"TORCH_DISTRIBUTED_DEBUG": "off"}),
    Case("DDP705", "info", {"CUDA_LAUNCH_BLOCKING": "1"}),
    Case(
        "DDP705",
        "warning",
        wrong={"CUDA_LAUNCH_BLOCKING": "1"},
        right={"CUDA_LAUNCH_BLOCKING": "0"},
        facts={"gpus": (GPU,)},
    ),
]

BOUNDED = (
    ("NCCL_CROSS_NIC", "3", "2"),
    ("NCCL_IB_SL", "16", "-1"),
    ("NCCL_IB_TC", "256", "106"),
    ("NCCL_NTHREADS", "1024", "0"),
    ("NCCL_MIN_NCHANNELS", "65", "32"),
    ("NCCL_MAX_NCHANNELS", "0", "2"),
    ("NCCL_CGA_CLUSTER_SIZE", "9", "4"),
    ("NCCL_MIN_CTAS", "0", "8"),
    ("CUDA_DEVICE_MAX_CONNECTIONS", "64", "1"),
    ("TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGFOO", "SIGTERM, SIGUSR1"),
    ("PET_SIGNALS_TO_HANDLE", "USR1", "SIGUSR1"),
)
VALUES = [
    *(Case("DDP703", "warning", {name: bad}, {name: good}) for name, bad, good in BOUNDED),
    *(
        Case("DDP703", "error", {"NCCL_COMM_ID": "node1"}, {"NCCL_COMM_ID": right}, WITH_NCCL)
        for right in ("node1:29600", "10.0.0.1:29600", "[2001:db8::1]:29600")
    ),
    Case(
        "DDP703",
        "error",
        wrong={"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "abc"},
        right={"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "1800"},
        facts=WITH_NCCL,
    ),
    Case(
        "DDP703",
        "warning",
        wrong={"CUBLAS_WORKSPACE_CONFIG": "4096"},
        right={"CUBLAS_WORKSPACE_CONFIG": ":4096:8"},
    ),
    Case("DDP703", "warning", {"CUDA_MODULE_LOADING": "1"}, {"CUDA_MODULE_LOADING": "lazy"}),
    Case("DDP703", "warning", {"NCCL_NSOCKS_PERTHREAD": "65"}, {"NCCL_NSOCKS_PERTHREAD": "4"}),
    Case(
        "DDP703",
        "warning",
        {"TORCHELASTIC_HEALTH_CHECK_PORT": "http"},
        {"TORCHELASTIC_HEALTH_CHECK_PORT": "8080"},
    ),
    Case("DDP703", "error", {"TORCH_FR_BUFFER_SIZE": "two"}, {"TORCH_FR_BUFFER_SIZE": "20"}),
    Case("DDP703", "error", {"TORCH_FR_BUFFER_SIZE": ""}, {"TORCH_NCCL_TRACE_BUFFER_SIZE": "9"}),
    Case("DDP703", "warning", {"TORCH_FR_BUFFER_SIZE": "2k"}, {"TORCH_FR_BUFFER_SIZE": " 2"}),
    # What only a torch with NCCL reads ends nothing where there is none.
    Case(
        "DDP703",
        "error",
        wrong={"TORCH_NCCL_NAN_CHECK": "on"},
        right={"TORCH_NCCL_NAN_CHECK": "No"},
        facts=WITH_NCCL,
    ),
    Case(
        "DDP703",
        "error",
        wrong={"TORCH_NCCL_NAN_CHECK": "on"},
        right={"TORCH_NCCL_NAN_CHECK": "on"},
        facts=WITH_NCCL,
        right_facts={},
    ),
    *(
        Case("DDP703", "error", {name: wrong}, {name: right}, WITH_NCCL)
        for name, wrong, right in (
            ("NCCL_ALGO", "Rings", "ring"),
            ("NCCL_ALGO", "ring;tree", "^nvls,NVLSTree;allreduce:tree,ring"),
            ("NCCL_ALGO", "all_reduce:ring", "allreduce:ring"),
            ("NCCL_PROTO", "ll256", "^LL128"),
        )
    ),
    Case("DDP703", "warning", {"NCCL_P2P_LEVEL": "nvl"}, {"NCCL_P2P_LEVEL": "NVL"}),
    Case("DDP703", "warning", {"NCCL_NET_GDR_LEVEL": "phb"}, {"NCCL_NET_GDR_LEVEL": "3"}),
    Case("DDP703", "error", {"TORCH_DIST_INIT_BARRIER": "yes"}, {"TORCH_DIST_INIT_BARRIER": "1"}),
    Case("DDP703", "error", {"TORCH_DISTRIBUTED_DEBUG": "1"}, {"TORCH_DISTRIBUTED_DEBUG": "OFF"}),
    Case("DDP703", "error", {"TORCH_DISTRIBUTED_DEBUG": ""}, {"NCCL_DEBUG": ""}),
    Case("DDP703", "error", {"GLOO_DEVICE_TRANSPORT": "tcp"}, {"GLOO_DEVICE_TRANSPORT": "TCP"}),
    Case("DDP703", "error", {"PET_STANDALONE": "true"}, {"PET_STANDALONE": "1"}),
    Case("DDP703", "error", {"LOGLEVEL": "loud"}, {"LOGLEVEL": "debug"}),
    Case("DDP703", "error", {"RANK": "zero"}, {"RANK": "0"}),
    Case("DDP703", "error", {"MASTER_PORT": "70000"}, {"MASTER_PORT": "29512"}),
    Case("DDP703", "error", {"MASTER_PORT": "http"}, {"MASTER_PORT": ""}),
    Case("DDP703", "error", {"MASTER_ADDR": "http://127.0.0.1"}, {"MASTER_ADDR": "::1"}),
    Case("DDP703", "error", {"MASTER_ADDR": "127.0.0.1:29500"}, {"MASTER_ADDR": "127.0.0.1"}),
    Case("DDP703", "warning", {"NCCL_IB_DISABLE": "true"}, {"NCCL_IB_DISABLE": "0x1"}),
    Case("DDP703", "warning", {"NCCL_BUFFSIZE": "4M"}, {"NCCL_BUFFSIZE": "4194304"}),
    Case("DDP703", "warning", {"NCCL_DEBUG": "LOUD"}, {"NCCL_DEBUG": "warn"}),
    Case("DDP703", "warning", {"NCCL_DEBUG_SUBSYS": "INIT,NETT"}, {"NCCL_DEBUG_SUBSYS": "^net"}),
    Case("DDP703", "warning", {"USE_LIBUV": "true"}, {"USE_LIBUV": "0"}),
    Case("DDP703", "warning", {"OMP_NUM_THREADS": "0"}, {"OMP_NUM_THREADS": "4,2"}),
    Case("DDP703", "warning", {"OMP_NUM_THREADS": "auto"}, {"OMP_NUM_THREADS": ""}),
    Case("DDP703", "warning", {"CUDA_DEVICE_ORDER": "PCI"}, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}),
]

PAIRS = [
    Case(
        "DDP704",
        "warning",
        {"NCCL_MIN_NCHANNELS": "32", "NCCL_MAX_NCHANNELS": "4"},
        {"NCCL_MIN_NCHANNELS": "4", "NCCL_MAX_NCHANNELS": "32"},
    ),
    Case(
        "DDP704",
        "warning",
        {"NCCL_MIN_CTAS": "32", "NCCL_MAX_CTAS": "4"},
        {"NCCL_MIN_CTAS": "4", "NCCL_MAX_CTAS": "4"},
    ),
    Case(
        "DDP704",
        "warning",
        {"NCCL_SOCKET_NTHREADS": "16", "NCCL_NSOCKS_PERTHREAD": "8"},
        {"NCCL_SOCKET_NTHREADS": "16", "NCCL_NSOCKS_PERTHREAD": "4"},
    ),
    Case(
        "DDP704",
        "info",
        wrong={"NCCL_OOB_NET_IFNAME": "eth0"},
        right={"NCCL_OOB_NET_IFNAME": "mlx5_1", "NCCL_OOB_NET_ENABLE": "1"},
    ),
    Case(
        "DDP704",
        "warning",
        wrong={"NCCL_ASYNC_ERROR_HANDLING": "3", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"},
        right={"NCCL_ASYNC_ERROR_HANDLING": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"},
    ),
    Case(
        "DDP704",
        "warning",
        wrong={"PYTORCH_ALLOC_CONF": "a:1", "PYTORCH_CUDA_ALLOC_CONF": "a:2"},
        right={"PYTORCH_ALLOC_CONF": "a:1", "PYTORCH_CUDA_ALLOC_CONF": "a:1"},
    ),
    Case(
        "DDP704",
        "warning",
        wrong={"TORCH_NCCL_BLOCKING_WAIT": "1", "TORCH_NCCL_DUMP_ON_TIMEOUT": "true"},
        right={"TORCH_NCCL_BLOCKING_WAIT": "0", "TORCH_NCCL_DUMP_ON_TIMEOUT": "true"},
    ),
    Case(
        "DDP704",
        "warning",
        wrong={"TORCH_FR_BUFFER_SIZE": "0", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1"},
        right={"TORCH_FR_BUFFER_SIZE": "2000", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1"},
    ),
    Case(
        "DDP704",
        "info",
        wrong={**TORCHRUN, "NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": "/tmp/nccl"},
        right={**TORCHRUN, "NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": "/tmp/nccl.%h.%p"},
    ),
    Case(
        "DDP704",
        "info",
        wrong={**TORCHRUN, "NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": "/dev/shm/nccl.%h"},
        right={**TORCHRUN, "NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": "/dev/stderr"},
    ),
    Case(
        "DDP704",
        "info",
        wrong={"NCCL_DEBUG_SUBSYS": "NET"},
        right={"NCCL_DEBUG_SUBSYS": "NET", "NCCL_DEBUG": "info"},
    ),
    Case(
        "DDP704",
        "warning",
        wrong={"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"},
        right={"TORCH_NCCL_ASYNC_ERROR_HANDLING": "3"},
    ),
    # Under the old names, which are heard where the new ones are not set.
    Case(
        "DDP704",
        "warning",
        wrong={"NCCL_BLOCKING_WAIT": "1", "TORCH_NCCL_DUMP_ON_TIMEOUT": "true"},
        right={"NCCL_BLOCKING_WAIT": "0", "TORCH_NCCL_DUMP_ON_TIMEOUT": "true"},
    ),
    Case(
        "DDP704",
        "warning",
        wrong={"TORCH_NCCL_TRACE_BUFFER_SIZE": "0", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1"},
        right={"TORCH_NCCL_TRACE_BUFFER_SIZE": "9", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1"},
    ),
    Case(
        "DDP704",
        "warning",
        wrong={"NCCL_ASYNC_ERROR_HANDLING": "0"},
        right={"NCCL_ASYNC_ERROR_HANDLING": "1"},
    ),
    Case(
        "DDP704",
        "info",
        wrong={"NCCL_IB_HCA": "mlx5_0", "NCCL_IB_DISABLE": "1"},
        right={"NCCL_IB_HCA": "mlx5_0", "NCCL_IB_DISABLE": "0"},
    ),
    Case(
        "DDP704",
        "info",
        wrong={"NCCL_IB_TIMEOUT": "22", "NCCL_NET": "Socket"},
        right={"NCCL_SOCKET_IFNAME": "eth0", "NCCL_NET": "Socket"},
    ),
]


@pytest.mark.parametrize("case", [*NAMES, *VALUES, *PAIRS], ids=str)
def test_a_wrong_variable_is_named_and_a_right_one_is_not(case: Case, diagnose: Diagnose) -> None:
    check(case, diagnose)


UNDOCUMENTED = {
    row.name
    for row in known().values()
    if row.read_by == "NCCL" and row.kind == "c int" and not row.note
}


def test_whatever_is_said_of_a_variable_tells_who_reads_it_and_what_it_does(
    diagnose: Diagnose,
) -> None:
    told = set()
    for row in known().values():
        if row.status not in ("known", "debug", "obsolete", "legacy"):
            continue
        for value in ("maybe", "-9", "", "0", "1", "99999"):
            for one in diagnose({row.name: value}):
                if one.code not in ("DDP702", "DDP703", "DDP704", "DDP705"):
                    continue
                if not one.cause.startswith(row.name) or row.name == "PYTHON_EXEC":
                    continue  # that one has words of its own
                said = " ".join(one.evidence)
                assert row.note or row.name in UNDOCUMENTED, row.name
                accounts = [row, known()[row.instead]] if row.instead else [row]
                assert any(about.reader in said for about in accounts) or (
                    one.code == "DDP704" and "PyTorch" in said
                ), (row.name, value, said)
                told.add(row.name)
    assert len(told) > 150
    assert len(UNDOCUMENTED) <= 30  # of which NVIDIA's documentation says nothing


@pytest.mark.parametrize("set_by_torchrun", [{}, {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}])
def test_a_rank_under_torchrun_has_no_finding(
    diagnose: Diagnose, set_by_torchrun: dict[str, str]
) -> None:
    assert diagnose({**TORCHRUN, **set_by_torchrun}) == []


def test_a_healthy_machine_has_no_finding(diagnose: Diagnose) -> None:
    assert diagnose({}) == []


def test_the_worst_comes_first_and_the_order_does_not_change(diagnose: Diagnose) -> None:
    environ = {"NCCL_TIMEOUT": "1", "MASTER_PORT": "70000", "NCCL_DEBUG": "INFO", "RANK": "x"}
    found = diagnose(environ)
    order = [("error", "warning", "info").index(one.severity) for one in found]
    assert order == sorted(order)
    assert len(set(order)) == 3
    assert found == diagnose(dict(reversed(environ.items())))


def test_a_bad_value_that_keeps_torch_from_being_imported_is_told_once(diagnose: Diagnose) -> None:
    error = "ValueError: The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL."
    name = "TORCH_DISTRIBUTED_DEBUG"
    torch = TorchFailure(version="2.13.0", error=error, because_of=((name, "1"),))
    found = diagnose({name: "1"}, torch=torch)
    (told,) = [one for one in found if one.severity == "error"]
    assert (told.code, told.cause) == ("DDP703", f"{name}=1 is not understood")
    anyhow = TorchFailure(version="2.13.0", error=error)
    assert [one.code for one in diagnose({}, torch=anyhow)] == ["DDP712"]


@pytest.mark.parametrize(
    ("name", "code"), [("TORCH_LOGS", "DDP703"), ("LD_LIBRARY_PATH", "DDP712")]
)
def test_a_variable_without_which_torch_is_imported_is_the_cause(
    diagnose: Diagnose, name: str, code: str
) -> None:
    torch = TorchFailure(version="2.13.0", error="OSError: no", because_of=((name, "x"),))
    (told,) = diagnose({}, torch=torch)
    assert (told.code, told.severity) == (code, "error")
    assert told.cause == f"importing PyTorch 2.13.0 fails with {name}=x, and works without"
    assert "OSError: no" in told.evidence
    assert told.cure.commands == (f"unset {name}",)


def test_absence_from_nccl_is_proof_only_where_nccl_was_searched(diagnose: Diagnose) -> None:
    typo = {"NCCL_SOKET_IFNAME": "eth0"}

    def certainty(search: object) -> str:
        return next(one.certainty for one in diagnose(typo, search=search))

    def searched(library: str) -> Search:
        return Search(libraries=(library,), present=(), absent=tuple(typo))

    assert certainty(searched("libnccl.so.2")) == "proven"
    assert certainty(searched("libtorch_cpu.so")) == "evidence"
    assert certainty(Absent(absent="not searched")) == "evidence"


def test_the_finding_about_a_phantom_says_what_to_do_instead(diagnose: Diagnose) -> None:
    (one,) = diagnose({"NCCL_TIMEOUT": "3600"})
    assert one.cause == "NCCL_TIMEOUT=3600 has no effect"
    assert "init_process_group" in one.cure.text
    assert one.cure.commands == ("unset NCCL_TIMEOUT",)


def test_the_watchdogs_own_timeout_is_called_that_once_and_only_where_it_is_misread(
    diagnose: Diagnose,
) -> None:
    name = "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"
    assert diagnose({name: "600"}, **WITH_NCCL) == []
    (one,) = diagnose({name: "abc"}, **WITH_NCCL)
    assert any("not the timeout of collectives" in note for note in one.evidence)


@pytest.mark.parametrize(("names", "meant"), [("eth0", True), ("mlx5_1", False), ("=eth", False)])
def test_only_an_interface_is_advised_for_nccls_sockets(
    names: str, meant: bool, diagnose: Diagnose
) -> None:
    (one,) = diagnose({"NCCL_OOB_NET_IFNAME": names})
    assert (f"NCCL_SOCKET_IFNAME={names}" in one.cure.text) == meant
    assert ("NCCL_OOB_NET_ENABLE=1" in one.cure.text) != meant


def test_a_hidden_value_is_not_judged(diagnose: Diagnose) -> None:
    address = {"MASTER_ADDR": "http://ada:s3cr3t@127.0.0.1"}
    master = Absent(absent="not looked up")
    assert "DDP703" not in [one.code for one in diagnose(address, master=master)]


def test_where_nothing_could_be_found_out_nothing_is_wrong(
    environment_with: Callable[..., Environment],
) -> None:
    fields = (
        *("torch", "nccl_packages", "gpus", "infiniband", "cpus", "memory", "shared_memory"),
        *("limits", "interfaces", "hostname", "master", "listeners", "search"),
    )
    blind = environment_with(
        {
            "GLOO_SOCKET_IFNAME": "eth0",
            "CUDA_VISIBLE_DEVICES": "0",
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            **TORCHRUN,
        },
        **dict.fromkeys(fields, Unknown(unknown="no idea")),
    )
    assert findings(blind) == []
