"""What `env` says about PyTorch is true of the PyTorch that is installed."""

import ctypes
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
from environment_cases import Diagnose

from ddpdoctor.environment.variables import known
from tests.patience import ENDLESS

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

TOP = Path(__file__).parents[2]
Outcomes = dict[str, tuple[dict[str, str], str]]


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Outcomes:
    """What became of each claim, found out once for all workers of pytest-xdist."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder if worker_id == "master" else folder.parent
    with (shared / "claims.json").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if not (text := file.read()):
            text = perform(tmp_path_factory.mktemp("claims"))
            file.write(text)
    return json.loads(text)


def perform(folder: Path) -> str:
    script = Path(__file__).with_name("environment_claims.py")
    process = subprocess.Popen(
        [sys.executable, script, folder],
        env={"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "PYTHONPATH": str(TOP)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )
    try:
        return process.communicate(timeout=ENDLESS)[0]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


# claim, what becomes of it, code of the error that `env` reports for its variables ("" for none).
CLAIMS = [
    ("nothing set", "timeout 0:30:00", ""),
    ("phantom timeouts", "timeout 0:30:00", ""),
    ("barrier yes", "ValueError: invalid literal", "DDP703"),
    ("barrier 1", "timeout", ""),
    ("lazy maybe", "RuntimeError: Invalid value for environment variable", "DDP703"),
    ("lazy True", "timeout", ""),
    ("gloo eth99", "RuntimeError.*Unable to find address for: eth99", "DDP107"),
    ("gloo blank", "RuntimeError.*Unable to find address for:  lo", "DDP107"),
    ("nccl eth99", "timeout", ""),
    ("transport tcp", "RuntimeError.*unsupported gloo device", "DDP703"),
    ("transport TCP", "timeout", ""),
    ("recorder size abc", "hangs|SIGABRT", "DDP703"),
    ("recorder size empty", "hangs|SIGABRT", "DDP703"),
    ("recorder stack maybe", "hangs|SIGABRT", "DDP703"),
    ("recorder old size abc", "hangs|SIGABRT", "DDP703"),
    ("recorder size 10", "timeout", ""),
    ("debug 1", "ValueError: The value of TORCH_DISTRIBUTED_DEBUG must be", "DDP703"),
    ("debug empty", "ValueError: The value of TORCH_DISTRIBUTED_DEBUG must be", "DDP703"),
    ("debug info", "set", ""),
    ("ddp INFO", "built", ""),
    ("alone", "joined", ""),
    ("agent store true", "joined", ""),
    ("rank outside", "hangs", "DDP105"),
    ("port 0 of two", "hangs", "DDP104"),
    ("nccl maybe", "timeout", ""),
    ("port 70000", "ValueError: port must have value", "DDP703"),
    ("port http", "ValueError: invalid literal", "DDP703"),
    ("address with scheme", "hangs", "DDP703"),
    ("no rank", "ValueError.*RANK expected, but not set", ""),
    ("torchrun plain", "1 None False", ""),
    ("torchrun MASTER_PORT", "1 None False", ""),
    ("torchrun PET", "3 None True", ""),
    ("torchrun PET_NPROC", "1 None False", ""),
    ("torchrun standalone true", "ValueError: invalid literal", "DDP703"),
]


@pytest.mark.parametrize(("claim", "outcome", "code"), CLAIMS, ids=[claim for claim, *_ in CLAIMS])
def test_env_calls_an_error_what_fails_and_nothing_else(
    outcomes: Outcomes, diagnose: Diagnose, claim: str, outcome: str, code: str
) -> None:
    variables, seen = outcomes[claim]
    assert re.match(outcome, seen, re.DOTALL), seen
    errors = {one.code for one in diagnose(variables) if one.severity == "error"}
    assert errors == ({code} if code else set())


@pytest.mark.parametrize(
    ("claim", "outcome", "code"),
    [
        ("ddp DETAIL", "SIGSEGV", "DDP709"),
        ("agent store True", "hangs", "DDP706"),
        ("others missing", "hangs", "DDP105"),
        ("node 3 of 2", "hangs", "DDP105"),
    ],
)
def test_env_warns_of_what_fails_in_some_circumstances(
    outcomes: Outcomes, diagnose: Diagnose, claim: str, outcome: str, code: str
) -> None:
    variables, seen = outcomes[claim]
    if claim == "ddp DETAIL" and not metadata.version("torch").startswith("2.13."):
        pytest.skip("known of torch 2.13 alone")
    assert seen == outcome
    assert code in [one.code for one in diagnose(variables) if one.severity == "warning"]


def test_torch_with_mkl_takes_its_threads_before_those_of_openmp(
    outcomes: Outcomes, diagnose: Diagnose
) -> None:
    seen = outcomes["threads of MKL"][1]
    if not seen.endswith("True"):
        pytest.skip("this torch is built without MKL")
    assert seen == "1 True"
    four = {"PET_NPROC_PER_NODE": "4", "OMP_NUM_THREADS": "8"}
    assert "DDP603" in [one.code for one in diagnose(four)]
    assert "DDP603" not in [one.code for one in diagnose({**four, "MKL_NUM_THREADS": "1"})]
    turned = {**four, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "8"}
    assert "DDP603" in [one.code for one in diagnose(turned)]


def test_torchrun_refuses_the_values_that_env_calls_an_error_and_no_other(
    outcomes: Outcomes, diagnose: Diagnose
) -> None:
    tried = json.loads(outcomes["torchrun values"][1])
    assert len(tried) > 40
    for name, value, fate in tried:
        errors = [one.code for one in diagnose({name: value}) if one.severity == "error"]
        assert errors == (["DDP703"] if fate == "refused" else []), (name, value)


def test_torchrun_starts_what_python_exec_names(outcomes: Outcomes) -> None:
    assert outcomes["torchrun program"][1] == "/nowhere/python"


def test_the_table_has_every_option_of_torchrun_and_no_other(outcomes: Outcomes) -> None:
    real = set(outcomes["torchrun options"][1].split())
    ours = {n for n, row in known().items() if n.startswith("PET_") and row.read_by == "torchrun"}
    assert len(real) > 20
    assert ours == real


def test_torch_sees_all_devices_where_env_is_silent_and_fewer_where_it_is_not(
    outcomes: Outcomes, diagnose: Diagnose
) -> None:
    claims = [value for claim, value in outcomes.items() if claim.startswith("devices")]
    assert len(claims) > 10
    for variables, seen in claims:
        value = variables["CUDA_VISIBLE_DEVICES"]
        named = [element.strip() for element in value.rstrip(",").split(",")]
        faulty = "DDP713" in [one.code for one in diagnose(variables)]
        assert faulty == (re.findall(r"[\w-]+", seen) != named), (value, seen)


def test_a_full_shared_memory_fails_as_we_say(outcomes: Outcomes) -> None:
    seen = outcomes["small shm"][1]
    if seen.startswith("skipped"):
        pytest.skip(seen)
    assert re.search("No space left on device|SIGBUS", seen)


@pytest.mark.parametrize(
    ("wrong", "how", "right", "well"),
    [
        ("few files", "RuntimeError.*Too many open files", "many files", "200 handed over"),
        ("small files", "RuntimeError.*File too large|SIGXFSZ", "large files", "1 handed over"),
        (
            "few processes",
            "RuntimeError.*Resource temporarily unavailable",
            "many processes",
            "joined",
        ),
        ("few tasks", "RuntimeError.*Resource temporarily unavailable", "many tasks", "joined"),
    ],
)
def test_a_rank_under_a_limit_fails_as_we_say(
    outcomes: Outcomes, wrong: str, how: str, right: str, well: str
) -> None:
    failed, went_well = outcomes[wrong][1], outcomes[right][1]
    if failed.startswith("skipped"):
        pytest.skip(failed)
    assert re.match(how, failed, re.DOTALL), failed
    assert went_well == well


def test_a_torch_for_cpus_has_no_nccl_as_we_say(outcomes: Outcomes) -> None:
    if metadata.version("torch").partition("+")[2] != "cpu":
        pytest.skip("this torch is built for GPUs")
    assert re.search("built.in|NCCL", outcomes["nccl without GPUs"][1])
    assert outcomes["nccl without GPUs"][1] != "joined"


@pytest.mark.parametrize(
    ("text", "number"), [("true", 0), ("4M", 4), ("0x10", 16), ("1", 1), ("-1", -1)]
)
def test_c_reads_numbers_as_we_say(diagnose: Diagnose, text: str, number: int) -> None:
    libc = ctypes.CDLL(None)
    libc.strtoll.restype = ctypes.c_longlong
    assert libc.strtoll(text.encode(), None, 0) == number
    notes = [note for one in diagnose({"NCCL_NTHREADS": text}) for note in one.evidence]
    judged = [note for note in notes if note.startswith("NCCL reads it as")]
    assert judged in ([], [f"NCCL reads it as {number}"])
    assert bool(judged) == (text in ("true", "4M"))


@pytest.mark.parametrize(("value", "threads"), [("auto", None), ("0", None), ("1", 1), ("3,2", 3)])
def test_openmp_reads_threads_as_we_say(
    child: Callable[..., str], diagnose: Diagnose, value: str, threads: int | None
) -> None:
    spec = find_spec("torch")
    libraries = Path(spec.origin or "").parent.glob("lib/libgomp*") if spec else iter(())
    library = next(libraries, None)
    if library is None:
        pytest.skip("this torch brings no libgomp")
    code = f"import ctypes; print(ctypes.CDLL({str(library)!r}).omp_get_max_threads())"
    expected = len(os.sched_getaffinity(0)) if threads is None else threads
    assert child(code, OMP_NUM_THREADS=value) == str(expected)
    faulty = "DDP703" in [one.code for one in diagnose({"OMP_NUM_THREADS": value})]
    assert faulty == (threads is None)
