"""PyTorch and NCCL themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from ddpdoctor.catalog import Finding
from ddpdoctor.environment.checks.finding import finding, setting, unset
from ddpdoctor.environment.checks.values import misread_names
from ddpdoctor.environment.model import Environment, Torch, TorchFailure
from ddpdoctor.environment.variables import known

_LEAD_ELSEWHERE = ("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "PYTHONPATH", "PYTHONHOME")


def unusable_torch(environment: Environment) -> Iterator[Finding]:
    """DDP712: torch is installed, and importing it fails; DDP703 where a value is the cause."""
    torch = environment.torch
    if not isinstance(torch, TorchFailure):
        return
    told = misread_names(environment)  # of these says another finding what they should be
    for name, value in torch.because_of:
        if name not in told:
            yield _because_of(torch, name, value)
    if torch.because_of:
        return
    yield finding(
        "DDP712",
        "error",
        f"PyTorch {torch.version} is installed, but importing it fails",
        "Reinstall it, or mend what its message names.",
        notes=(torch.error,),
        commands=("python -c 'import torch.distributed'",),
    )


def _because_of(torch: TorchFailure, name: str, value: str) -> Finding:
    leads = name in _LEAD_ELSEWHERE
    return finding(
        "DDP712" if leads else "DDP703",
        "error",
        f"importing PyTorch {torch.version} fails with {setting(name, value)}, and works without",
        "Take out of it what comes before torch's own." if leads else "Mend it, or remove it.",
        notes=("tried, with it and without", torch.error),
        commands=unset(name),
    )


def not_distributed(environment: Environment) -> Iterator[Finding]:
    """DDP712: a build of torch in which torch.distributed is left out."""
    torch = environment.torch
    if isinstance(torch, Torch) and not torch.backends:
        yield finding(
            "DDP712",
            "error",
            f"PyTorch {torch.version} is built without torch.distributed",
            "Install another build: those of pytorch.org for Linux have it.",
            notes=("torch.distributed.is_available() is False: no process group can be made",),
            commands=("python -c 'import torch; print(torch.distributed.is_available())'",),
        )


def without_numpy(environment: Environment) -> Iterator[Finding]:
    """DDP712: torch cannot use NumPy, and so sends no objects between ranks."""
    torch = environment.torch
    if isinstance(torch, Torch) and torch.backends and torch.numpy_failure is not None:
        yield finding(
            "DDP712",
            "warning",
            f"PyTorch {torch.version} cannot use NumPy: no object can be sent between ranks",
            "Install NumPy beside it.",
            notes=(
                f"torch says: {torch.numpy_failure}",
                "all_gather_object, broadcast_object_list and the like raise; tensors are sent",
            ),
            commands=("pip install numpy",),
        )


def nccl_mismatch(environment: Environment) -> Iterator[Finding]:
    """DDP710: another NCCL than the one that torch was built against."""
    packages = environment.nccl_packages
    if isinstance(packages, tuple) and len(packages) > 1:
        yield finding(
            "DDP710",
            "warning",
            f"{len(packages)} NCCL packages are installed over each other",
            "Keep the one that torch requires, and reinstall it.",
            notes=(
                ", ".join(packages),
                "they put libnccl.so.2 in the same place: the last one installed has won",
            ),
            commands=("pip uninstall NAME", "pip install --force-reinstall NAME"),
        )
    torch = environment.torch
    if not isinstance(torch, Torch) or torch.nccl_built is None:
        return
    loaded = torch.nccl_loaded
    if not isinstance(loaded, str) or loaded == torch.nccl_built:
        return
    shadow = _shadow(environment, torch.nccl_library or "")
    older = _number(loaded) < _number(torch.nccl_built)
    yield finding(
        "DDP710",
        "warning" if older else "info",
        f"torch was built against NCCL {torch.nccl_built}, and loads {loaded}",
        "Remove what shadows the right one: LD_LIBRARY_PATH, LD_PRELOAD, a second package.",
        notes=(
            f"loaded from {torch.nccl_library}",
            *((f"{shadow} puts it before torch's own",) if shadow else ()),
            *(
                ()
                if older
                else ("harmless as a rule: NCCL keeps its interface within a major version",)
            ),
        ),
        commands=unset(shadow) if shadow == "LD_PRELOAD" else (),
    )


def _shadow(environment: Environment, library: str) -> str:
    """The variable by which the linker came upon this library; "" where it is neither."""
    preloaded = re.split("[: ]", environment.value("LD_PRELOAD") or "")
    folders = (environment.value("LD_LIBRARY_PATH") or "").split(":")
    if library in filter(None, preloaded):
        return "LD_PRELOAD"
    before = any(one and PurePath(library).parent == PurePath(one) for one in folders)
    return "LD_LIBRARY_PATH" if before else ""


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def detail_debug(environment: Environment) -> Iterator[Finding]:
    """DDP709: TORCH_DISTRIBUTED_DEBUG=DETAIL, which breaks DDP on gloo in torch 2.13."""
    value = (environment.value("TORCH_DISTRIBUTED_DEBUG") or "").upper()
    torch = environment.torch
    version = torch.version if isinstance(torch, Torch | TorchFailure) else ""
    if value == "DETAIL" and version.startswith("2.13."):
        yield finding(
            "DDP709",
            "warning",
            "TORCH_DISTRIBUTED_DEBUG=DETAIL crashes the DDP constructor on gloo",
            "Remove it, or use INFO.",
            notes=(f"segmentation fault in torch 2.13; this is torch {version}",),
            commands=("export TORCH_DISTRIBUTED_DEBUG=INFO",),
        )
    elif value in ("INFO", "DETAIL"):
        yield finding(
            "DDP705",
            "info",
            f"{setting('TORCH_DISTRIBUTED_DEBUG', value)} is meant for debugging",
            "Remove it once you are done.",
            notes=(
                "harmless if you are debugging",
                known()["TORCH_DISTRIBUTED_DEBUG"].reader,
                *(("DETAIL checks every collective first",) if value == "DETAIL" else ()),
            ),
            commands=unset("TORCH_DISTRIBUTED_DEBUG"),
        )
