"""Each fact is found on a machine, or a part of one, that really is that way."""

import os
import shutil
import stat
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from ddpdoctor.environment import facts
from ddpdoctor.environment.facts import collect, gpu, software
from ddpdoctor.environment.facts.machine import Machine
from ddpdoctor.environment.model import (
    Absent,
    DriverFailure,
    SharedMemory,
    Torch,
    TorchFailure,
    Unknown,
)
from tests.thorough import thorough

BARE = {"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "")}
Child = Callable[..., str]


@pytest.fixture
def torch_package(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """Variables under which the given code is what `import torch` runs."""

    def install(code: str) -> dict[str, str]:
        package = tmp_path / "site" / "torch"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(code)
        (package / "distributed.py").write_text(
            "is_available = is_gloo_available = is_nccl_available = lambda: True"
        )
        return {**BARE, "PYTHONPATH": str(package.parent)}

    return install


TORCH = """
class version: cuda, hip = "13.0", None
class cuda:
    device_count = lambda: 2
    class nccl: version = lambda: (2, 29, 7)
__version__ = "2.13.0"
"""


def test_a_machine_with_nothing_set_is_healthy_and_every_fact_is_there() -> None:
    environment = collect(BARE)
    assert isinstance(environment.torch, Torch)
    assert "gloo" in environment.torch.backends
    assert environment.torch.folder.endswith("torch")
    assert environment.torch.instructions
    assert (environment.torch.accelerator == "cuda") == bool(environment.torch.cuda)
    assert environment.variables == environment.launchers == ()
    missing = [name for name, fact in environment if isinstance(fact, Unknown)]
    assert missing == []

    from ddpdoctor.environment.checks import findings

    troubles = {one.code for one in findings(environment) if one.severity != "info"}
    shared = environment.shared_memory
    if isinstance(shared, SharedMemory) and shared.free <= 64 << 20:
        troubles.discard("DDP604")  # this machine really is that way
    assert troubles == set()


def test_looking_at_the_machine_imports_no_torch_into_this_process(
    torch_package: Callable[[str], dict[str, str]], child: Child
) -> None:
    code = (
        "import sys; from ddpdoctor.environment.checks import findings;"
        "from ddpdoctor.environment.facts import collect; found = collect();"
        "findings(found); print(found.torch.version, 'torch' in sys.modules)"
    )
    assert child(code, **torch_package(TORCH)) == "2.13.0 False"


def test_a_python_without_torch_is_a_normal_fact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(tmp_path / "bare", symlinks=True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare/bin/python"))
    assert isinstance(software.torch(Machine(BARE)), Absent)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (
            "import os, sys\n"
            "print('terminate called\\n  what():  bad key', file=sys.stderr)\nos.abort()",
            "killed by signal 6: bad key",
        ),
        # The probe lies beside a module of this name.
        ("import cgroup", "ModuleNotFoundError: No module named 'cgroup'"),
        *thorough(
            (
                "raise OSError('libcudart.so.13: cannot open')",
                "OSError: libcudart.so.13: cannot open",
            ),
            ("import os; os.abort()", "killed by signal 6"),
            (
                "raise ValueError('\\nInvalid: +x, must be of\\nall, ddp, dynamo')",
                "ValueError: Invalid: +x, must be of",
            ),
            (
                "import absent_dependency",
                "ModuleNotFoundError: No module named 'absent_dependency'",
            ),
        ),
    ],
)
def test_a_torch_that_cannot_be_imported_says_why(
    torch_package: Callable[[str], dict[str, str]], code: str, error: str
) -> None:
    torch = software.torch(Machine(torch_package(code)))
    assert isinstance(torch, TorchFailure)
    assert torch.error == error


def test_the_variables_that_keep_torch_from_being_imported_are_found_by_trying(
    torch_package: Callable[[str], dict[str, str]],
) -> None:
    code = "import os\nfor name in ('TORCH_LOGS', 'CUDA_HOME'):\n"
    code += "    if os.environ.get(name) == 'bad': raise ValueError(name)\n"
    environ = torch_package(code + TORCH)

    def because_of(**set_: str) -> tuple[tuple[str, str], ...]:
        torch = software.torch(Machine({**environ, "TORCH_HOME": "/cache", **set_}))
        return torch.because_of if isinstance(torch, TorchFailure) else ()

    assert because_of(TORCH_LOGS="all") == ()
    assert because_of(TORCH_LOGS="bad", CUDA_HOME="/cuda") == (("TORCH_LOGS", "bad"),)
    both = (("CUDA_HOME", "bad"), ("TORCH_LOGS", "bad"))
    assert because_of(TORCH_LOGS="bad", CUDA_HOME="bad") == both


def test_a_torch_that_hangs_is_given_up_on_and_ended(
    torch_package: Callable[[str], dict[str, str]],
) -> None:
    environ = torch_package("import time; time.sleep(60)")
    before = psutil.Process().children(recursive=True)
    torch = Machine(environ, patience=0.5).find(software.torch)
    assert isinstance(torch, Unknown)
    assert "0.5 s" in torch.unknown
    after = psutil.Process().children(recursive=True)
    assert not [one for one in after if one not in before and one.is_running()]


def test_what_torch_prints_does_not_matter(
    torch_package: Callable[[str], dict[str, str]],
) -> None:
    environ = torch_package("print('{\"version\": 0}')\n" + TORCH)
    torch = software.torch(Machine(environ))
    assert isinstance(torch, Torch)
    assert (torch.version, torch.cuda, torch.visible_gpus) == ("2.13.0", "13.0", 2)
    assert torch.nccl_built == "2.29.7"
    assert isinstance(torch.nccl_loaded, Unknown)


def test_why_cuda_does_not_start_is_told_in_its_words_without_a_secret(
    torch_package: Callable[[str], dict[str, str]],
) -> None:
    starts = TORCH.replace("device_count", "init = lambda: None; device_count")
    fails = "Error 802: system not yet initialized, at http://ada:s3cr3t-Zq9@proxy"
    broken = TORCH.replace(
        "class cuda:", f"class cuda:\n    def init(): raise RuntimeError({fails!r})"
    )
    environ = torch_package(starts)
    told = software.torch(Machine(environ))
    assert isinstance(told, Torch)
    assert told.cuda_failure is None
    Path(environ["PYTHONPATH"], "torch/__init__.py").write_text(broken)
    told = software.torch(Machine(environ))
    assert isinstance(told, Torch)
    assert told.cuda_failure == "Error 802: system not yet initialized, at http://***@proxy"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_the_nccl_that_is_loaded_is_asked_for_its_own_version(
    torch_package: Callable[[str], dict[str, str]], tmp_path: Path
) -> None:
    source, library = tmp_path / "nccl.c", tmp_path / "libnccl.so.2"
    source.write_text("int ncclGetVersion(int *v) { *v = 21805; return 0; }")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    environ = torch_package(f"import ctypes; ctypes.CDLL({str(library)!r})\n{TORCH}")
    torch = software.torch(Machine(environ))
    assert isinstance(torch, Torch)
    assert torch.nccl_loaded == "2.18.5"
    assert torch.nccl_library == str(library)


def nvidia_smi(folder: Path, script: str, root: Path = Path("/")) -> Machine:
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    return Machine({"PATH": f"{folder}:{BARE['PATH']}"}, root, patience=0.5)


def pci_device(root: Path, kind: str, vendor: str) -> Path:
    """A root with one device on its PCI bus, as the kernel shows it."""
    device = root / "sys/bus/pci/devices/0000:17:00.0"
    device.mkdir(parents=True)
    (device / "class").write_text(f"{kind}\n")
    (device / "vendor").write_text(f"{vendor}\n")
    return root


def test_gpus_are_those_that_nvidia_smi_lists(tmp_path: Path) -> None:
    machine = nvidia_smi(
        tmp_path,
        "echo '0, NVIDIA H100 80GB HBM3, GPU-1f, 81559, Default, Disabled, 570.86.15'\n"
        "echo '1, NVIDIA H100 80GB HBM3, GPU-2f, [N/A], Exclusive_Process, Enabled, 570.86.15'",
    )
    first, second = gpu.gpus(machine)
    assert (first.index, first.memory_mib, first.driver) == (0, 81559, "570.86.15")
    assert (second.memory_mib, second.compute_mode, second.mig) == (
        None,
        "Exclusive_Process",
        "Enabled",
    )


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'Failed to initialize NVML: Driver/library mismatch'; exit 18", "status 18: Failed"),
        ("exec sleep 60", "no answer in 0.5 s"),
        ("echo 0, odd", "not asked"),
    ],
)
def test_a_driver_that_does_not_answer_is_not_the_same_as_no_gpu(
    tmp_path: Path, script: str, reason: str
) -> None:
    with_gpu = pci_device(tmp_path / "with", "0x030200", "0x10de")
    gpus = nvidia_smi(tmp_path, script, with_gpu).find(gpu.gpus)
    assert isinstance(gpus, DriverFailure)
    assert reason in gpus.error


@pytest.mark.parametrize(("kind", "vendor"), [("0x030000", "0x1a03"), ("0x040300", "0x10de")])
def test_a_tool_that_fails_where_no_gpu_is_on_the_bus_is_no_gpu(
    kind: str, vendor: str, tmp_path: Path
) -> None:
    """A login node: the driver's tools are installed, and its graphics are the board's own."""
    said = 'echo "NVIDIA-SMI has failed because it couldn\'t communicate with the driver"; exit 9'
    login = nvidia_smi(tmp_path, said, pci_device(tmp_path / "login", kind, vendor))
    assert isinstance(login.find(gpu.gpus), Absent)
    assert isinstance(login.find(gpu.topology), Absent)


def test_a_driver_without_a_device_is_no_gpu(tmp_path: Path) -> None:
    machine = nvidia_smi(tmp_path, "echo 'No devices were found'; exit 6")
    assert isinstance(machine.find(gpu.gpus), Absent)


def test_a_gpu_device_without_nvidia_smi_is_not_the_same_as_no_gpu(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    machine = Machine({"PATH": str(tmp_path)}, root=tmp_path)
    assert isinstance(machine.find(gpu.gpus), Absent)
    (tmp_path / "dev/nvidia0").touch()
    assert isinstance(machine.find(gpu.gpus), Unknown)


def noted(order: list[str], name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        order.append(name)
        return function(*given)

    return call


def test_a_torch_that_is_slow_to_import_is_not_waited_for_by_the_other_facts(
    torch_package: Callable[[str], dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it takes of the machine is not counted: memory and GPUs are looked at before."""
    order: list[str] = []
    for room, name in (
        (facts.gpu, "gpus"),
        (facts.host, "memory"),
        (facts.network, "listeners"),
        (facts.software, "ask_torch"),
        (facts.software, "torch"),
    ):
        monkeypatch.setattr(room, name, noted(order, name, getattr(room, name)))
    known = collect(torch_package(TORCH))
    assert isinstance(known.torch, Torch)
    once = list(dict.fromkeys(order))  # shared memory asks for memory, too
    assert once == ["memory", "ask_torch", "gpus", "listeners", "torch"]


def test_torch_touches_no_gpu_before_all_others_are_known(
    torch_package: Callable[[str], dict[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Or it would be found among those that compute there, or refused by an exclusive mode."""
    touched, seen = tmp_path / "touched", []
    counts = f"device_count = lambda: open({str(touched)!r}, 'w').write('2')"
    code = TORCH.replace("device_count = lambda: 2", counts)

    def look(*_: object) -> tuple[()]:
        for _ in range(40):  # a torch that does not wait has touched it by then
            if touched.exists():
                break
            time.sleep(0.05)
        seen.append(touched.exists())
        return ()

    monkeypatch.setattr(facts.gpu, "gpus", look)
    known = collect(torch_package(code)).torch
    assert isinstance(known, Torch)
    assert known.visible_gpus == 1  # characters written
    assert seen == [False]


def test_whoever_interrupts_it_leaves_no_import_of_torch_behind(
    torch_package: Callable[[str], dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def ask(machine: Machine) -> Any:
        asked.append(ask_torch(machine))
        return asked[0]

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    ask_torch = software.ask_torch
    monkeypatch.setattr(facts.software, "ask_torch", ask)
    monkeypatch.setattr(facts.network, "listeners", interrupt)
    with pytest.raises(KeyboardInterrupt):
        collect(torch_package("import time; time.sleep(60)"))
    assert asked[0].process.poll() is not None
