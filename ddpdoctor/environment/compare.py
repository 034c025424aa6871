"""What differs between hosts that are to train together, from the JSON that `env` wrote on each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddpdoctor.catalog import Finding, Severity
from ddpdoctor.environment.checks.finding import finding
from ddpdoctor.environment.model import (
    Clock,
    Cpus,
    Environment,
    Fabric,
    HostName,
    Kernel,
    Torch,
)
from ddpdoctor.report.gravity import gravest_first
from ddpdoctor.report.model import earlier

# Set by launchers, and different on every host for good reason.
_OWN_TO_EACH = ("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "NODE_RANK", "MACHINE_RANK")
_OWN_PREFIXES = ("SLURM_", "OMPI_", "PMI", "TORCHELASTIC_", "KUBERNETES_", "HOSTNAME")
_MUST_AGREE = ("NCCL_", "GLOO_", "TORCH_", "MASTER_", "WORLD_SIZE", "LOCAL_WORLD_SIZE")


@dataclass(frozen=True, slots=True)
class Host:
    """One host's facts, and what it is called."""

    name: str
    environment: Environment


@dataclass(frozen=True, slots=True)
class _Trait:
    name: str
    of: Callable[[Environment], str | None]
    """None where the host could not tell."""
    code: str
    severity: Severity
    then: str
    cure: str


def read(paths: Sequence[Path]) -> list[Host]:
    """The hosts, each named by its host name or, where two share one, by its file.

    Raises Unreadable.
    """
    environments = [earlier(path, "env", _environment) for path in paths]
    names = [_name(one) for one in environments]
    return [
        Host(name if name and names.count(name) == 1 else path.name, environment)
        for path, name, environment in zip(paths, names, environments, strict=True)
    ]


def _environment(data: Mapping[str, Any]) -> Environment:
    return Environment.model_validate(data.get("environment"))


def _name(environment: Environment) -> str | None:
    return environment.hostname.name if isinstance(environment.hostname, HostName) else None


def differences(hosts: Sequence[Host]) -> list[Finding]:
    """Everything that differs, worst first."""
    return gravest_first([*_traits(hosts), *_variables(hosts)], by_code=True)


def _traits(hosts: Sequence[Host]) -> Iterator[Finding]:
    for trait in _TRAITS:
        values = {host.name: trait.of(host.environment) for host in hosts}
        known = {name: value for name, value in values.items() if value is not None}
        if len(set(known.values())) > 1:
            yield finding(
                trait.code,
                trait.severity,
                f"{trait.name} differs between hosts",
                trait.cure,
                notes=(*_by_value(known), trait.then),
            )


def _variables(hosts: Sequence[Host]) -> Iterator[Finding]:
    names = {one.name for host in hosts for one in host.environment.variables}
    for name in sorted(names):
        if name in _OWN_TO_EACH or name.startswith(_OWN_PREFIXES):
            continue
        shown = {host.name: _shown(host.environment, name) for host in hosts}
        if len(set(shown.values())) == 1:
            continue
        matters = name.startswith(_MUST_AGREE) and "IFNAME" not in name
        yield finding(
            "DDP719",
            "warning" if matters else "info",
            f"{name} differs between hosts",
            "Set it in the file that starts the job on all of them.",
            notes=(
                *_by_value(shown),
                *(() if matters else ("harmless if you meant it",)),
            ),
        )


def _shown(environment: Environment, name: str) -> str:
    for variable in environment.variables:
        if variable.name == name:
            return "hidden" if variable.redacted else variable.value
    return "not set"


def _by_value(values: dict[str, str]) -> Iterator[str]:
    for value in sorted(set(values.values())):
        names = [name for name, other in values.items() if other == value]
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        yield f"{value}: {', '.join(names[:4])}{more}"


def _torch(environment: Environment) -> str | None:
    return environment.torch.version if isinstance(environment.torch, Torch) else None


def _nccl(environment: Environment) -> str | None:
    torch = environment.torch
    loaded = torch.nccl_loaded if isinstance(torch, Torch) else None
    return loaded if isinstance(loaded, str) else None


def _gpus(environment: Environment) -> str | None:
    if not isinstance(environment.gpus, tuple):
        return None
    names = [gpu.name for gpu in environment.gpus]
    return ", ".join(f"{names.count(name)} x {name}" for name in sorted(set(names))) or "none"


def _driver(environment: Environment) -> str | None:
    gpus = environment.gpus
    return gpus[0].driver if isinstance(gpus, tuple) and gpus else None


def _python(environment: Environment) -> str:
    return ".".join(environment.python.version.split(".")[:2])


def _usable_cpus(environment: Environment) -> str | None:
    return str(environment.cpus.usable) if isinstance(environment.cpus, Cpus) else None


def _kernel(environment: Environment) -> str | None:
    return environment.kernel.release if isinstance(environment.kernel, Kernel) else None


def _clock(environment: Environment) -> str | None:
    if not isinstance(environment.clock, Clock):
        return None
    return "synchronised" if environment.clock.synchronised else "not synchronised"


def _fabric(environment: Environment) -> str | None:
    ports: tuple[Fabric, ...] | None = (
        environment.fabric if isinstance(environment.fabric, tuple) else None
    )
    if ports is None:
        return None
    return ", ".join(f"{one.device}:{one.port} {one.state} {one.rate}" for one in ports) or "none"


_TRAITS = (
    _Trait(
        "torch",
        _torch,
        "DDP110",
        "error",
        "ranks of different versions hang or crash, or agree on nothing that they exchange",
        "Install the same torch on every host.",
    ),
    _Trait(
        "NCCL",
        _nccl,
        "DDP110",
        "error",
        "NCCL refuses peers of another version, or hangs with them",
        "Load the same NCCL on every host.",
    ),
    _Trait(
        "Python's minor version",
        _python,
        "DDP110",
        "warning",
        "objects that ranks send each other are pickled",
        "Use the same Python on every host.",
    ),
    _Trait(
        "the driver",
        _driver,
        "DDP719",
        "warning",
        "the same binary may run on one host and not on the other",
        "Install the same driver on every host.",
    ),
    _Trait(
        "the count or kind of GPUs",
        _gpus,
        "DDP719",
        "warning",
        "ranks per node differ then, and the slowest GPU sets the pace",
        "Give each host its own --nproc-per-node, or choose hosts that are alike.",
    ),
    _Trait(
        "the network fabric",
        _fabric,
        "DDP719",
        "warning",
        "a host whose link is down or slower holds up all others",
        "Mend the ports, or leave the host out.",
    ),
    _Trait(
        "the count of usable CPUs",
        _usable_cpus,
        "DDP719",
        "info",
        "harmless, but data loaders are as fast as the smallest host's",
        "Choose workers per rank by each host's own count.",
    ),
    _Trait(
        "the kernel",
        _kernel,
        "DDP719",
        "info",
        "harmless as a rule",
        "Nothing, unless only one of them misbehaves.",
    ),
    _Trait(
        "the clock's state",
        _clock,
        "DDP719",
        "info",
        "harmless for training: but the times in the hosts' logs do not compare",
        "Start a time daemon on every host.",
    ),
)
