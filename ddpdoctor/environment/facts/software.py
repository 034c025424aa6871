"""Python, PyTorch and NCCL, without importing torch into this process."""

from __future__ import annotations

import json
import platform
import re
import sys
from importlib import metadata
from pathlib import Path

from ddpdoctor.environment.facts.machine import Machine
from ddpdoctor.environment.model import Absent, Python, Torch, TorchFailure

_PROBE = Path(__file__).with_name("torch_probe.py")
_NOT_THERE = re.compile(r"^ModuleNotFoundError: No module named 'torch'$", re.MULTILINE)


def python(_: Machine) -> Python:
    """The interpreter."""
    return Python(
        version=platform.python_version(),
        implementation=platform.python_implementation(),
        executable=sys.executable,
        platform=platform.platform(),
    )


def torch(machine: Machine) -> Torch | TorchFailure | Absent:
    """PyTorch as the user's own process would import it, asked in a child. Raises NoAnswer.

    A child costs an import of torch, and nothing that torch does, prints, spawns or dies of can
    reach us.
    """
    # -P: or the probe's own folder would come first on sys.path, and torch might import from it.
    status, output, errors = machine.ask([sys.executable, "-P", str(_PROBE)])
    if status == 0:
        facts = json.loads(output.splitlines()[-1])
        return Torch.model_validate(facts)
    if _NOT_THERE.search(errors):
        return Absent(absent="torch is not installed for this interpreter")
    lines = [line for line in errors.splitlines() if line.strip()]
    last = lines[-1].strip() if lines else ""
    how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
    return TorchFailure(
        version=_version_of("torch"),
        error=machine.redactor.text(last if status > 0 and last else how),
    )


def nccl_packages(_: Machine) -> tuple[str, ...]:
    """Installed nvidia-nccl-* distributions, "name version"."""
    return tuple(
        sorted(
            {
                f"{name} {package.version}"
                for package in metadata.distributions()
                if (name := package.metadata["Name"] or "").startswith("nvidia-nccl-")
            }
        )
    )


def _version_of(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"
