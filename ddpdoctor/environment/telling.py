"""What `ddpdoctor env` reports: the facts in a line each, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import BaseModel

from ddpdoctor.catalog import Finding
from ddpdoctor.environment.model import (
    Absent,
    Clock,
    Cpus,
    DriverFailure,
    Environment,
    EnvironmentReport,
    Folder,
    Kernel,
    Limit,
    Memory,
    Torch,
    TorchFailure,
    Unknown,
)
from ddpdoctor.report.model import Report
from ddpdoctor.report.words import count, in_bytes, one_line

_LACKS = "not checked ("


def told(report: EnvironmentReport) -> Report:
    """What every format shows of it."""
    known = tuple((one_line(n), one_line(v)) for n, v in facts(report.environment))
    python, torch = report.environment.python, report.environment.torch
    return Report(
        command="env",
        versions=(f"torch {torch.version}, " if isinstance(torch, Torch) else "")
        + f"Python {python.version}",
        verdict=summary(report),
        findings=report.findings,
        not_seen=tuple(f"{name}: {value}" for name, value in known if _LACKS in value),
        facts=known,
        data={"environment": report.environment.model_dump(mode="json")},
    )


def compared(hosts: Sequence[str], findings: Sequence[Finding]) -> Report:
    """What differs between hosts."""
    found = count(len(findings), "difference") if findings else "nothing that matters differs"
    return Report(
        command="env --compare",
        verdict=f"{count(len(hosts), 'host')}: {found}",
        findings=tuple(findings),
        machine=", ".join(hosts),
        data={"hosts": list(hosts)},
    )


def summary(report: EnvironmentReport) -> str:
    """The findings by severity, and the facts that are missing, counted."""
    severities = [finding.severity for finding in report.findings]
    return (
        f"{count(severities.count('error'), 'error')}, "
        f"{count(severities.count('warning'), 'warning')}, "
        f"{severities.count('info')} harmless, "
        f"{not_checked(report)} not checked"
    )


def not_checked(report: EnvironmentReport) -> int:
    """How many facts could not be found out."""
    return len(list(_unknowns(report.environment)))


def facts(environment: Environment) -> Iterator[tuple[str, str]]:
    """(name, value) of each fact, in words."""
    python, torch = environment.python, environment.torch
    yield "Python", f"{python.version} ({python.implementation}), {python.executable}"
    yield "platform", ", ".join(filter(None, (python.system, python.platform)))
    yield "torch", _torch(torch)
    if isinstance(torch, Torch):
        yield "backends", ", ".join(torch.backends)
        yield "NCCL", _or(torch.nccl_loaded)
    if environment.packages:
        yield "packages", _or(environment.packages)
    if environment.compilers:
        yield "compilers", _or(environment.compilers)
    if not isinstance(environment.accelerate, Absent):
        yield "accelerate", _or(environment.accelerate)
    if environment.nccl_packages:
        yield "NCCL packages", _or(environment.nccl_packages)
    gpus = environment.gpus
    if isinstance(gpus, tuple):
        for gpu in gpus:
            memory = f"{gpu.memory_mib} MiB, " if gpu.memory_mib else ""
            driver = f"driver {gpu.driver}" + (f" (CUDA {gpu.cuda})" if gpu.cuda else "")
            busy = f", processes {', '.join(map(str, gpu.others))}" if gpu.others else ""
            health = f", fabric {gpu.fabric}" if gpu.fabric else ""
            health += f", {gpu.uncorrected} uncorrected errors" if gpu.uncorrected else ""
            yield f"GPU {gpu.index}", f"{gpu.name}, {memory}{driver}, MIG {gpu.mig}{health}{busy}"
    elif isinstance(gpus, DriverFailure):
        yield "GPUs", f"one is here, and the driver fails: {gpus.error}"
    else:
        yield "GPUs", _or(gpus)
    if environment.infiniband:
        yield "InfiniBand", _or(environment.infiniband)
    for name, fact in (("Xid", environment.xids), ("ACS", environment.redirecting)):
        if fact and not isinstance(fact, Absent):
            yield name, _or(fact)
    yield from _machine(environment)
    yield "CPUs", _cpus(environment.cpus)
    yield "memory", _memory(environment.memory)
    yield from _limits(environment)
    yield from _network(environment)
    for launcher in environment.launchers:
        yield "launcher", f"{launcher.name}: rank {launcher.rank} of {launcher.size}"
    if not environment.launchers:
        yield "launcher", "none (no launcher's variables are set)"
    if environment.context:
        yield "runs inside", _or(environment.context)
    for variable in environment.variables:
        where = f", set in {variable.file}" if variable.file else ""
        yield variable.name, f"{variable.value}  (read by {variable.read_by}{where})"
    if isinstance(environment.nccl_file, Unknown):
        yield "NCCL's file", _or(environment.nccl_file)


def _machine(environment: Environment) -> Iterator[tuple[str, str]]:
    if isinstance(environment.topology, tuple):
        for number, line in enumerate(environment.topology):
            yield "GPU topology" if not number else "", line
    if isinstance(environment.fabric, tuple):
        for port in environment.fabric:
            yield f"port {port.device}:{port.port}", f"{port.state}, {port.rate}, {port.layer}"
    else:
        yield "fabric", _or(environment.fabric)
    if not isinstance(environment.container, Absent):
        yield "container", _or(environment.container)
    kernel, clock, folder = environment.kernel, environment.clock, environment.folder
    if isinstance(kernel, Kernel):
        nodes = count(kernel.numa_nodes, "NUMA node")
        direct = f", GPUDirect by {_or(kernel.gpu_direct)}" if kernel.gpu_direct else ""
        scope = f"ptrace scope {_or(kernel.ptrace_scope)}"
        yield "kernel", f"{kernel.release}, {nodes}, {scope}{direct}"
    else:
        yield "kernel", _or(kernel)
    if isinstance(clock, Clock):
        yield "clock", "synchronised" if clock.synchronised else "not synchronised"
    else:
        yield "clock", _or(clock)
    if isinstance(folder, Folder):
        where = "other machines serve it, " if folder.remote else ""
        yield (
            "checkpoints",
            f"{folder.path}: {folder.filesystem}, {where}{in_bytes(folder.free)} free, "
            f"replace {_yes(folder.replaces)}, fsync {_yes(folder.syncs)}, "
            f"locks {_yes(folder.locks)}",
        )
    else:
        yield "checkpoints", _or(folder)


def _yes(works: bool | Unknown) -> str:
    return "works" if works is True else "fails" if works is False else _or(works)


def _torch(torch: Torch | TorchFailure | Absent | Unknown) -> str:
    if isinstance(torch, TorchFailure):
        return f"{torch.version}, and importing it fails: {torch.error}"
    if not isinstance(torch, Torch):
        return _or(torch)
    built = f"CUDA {torch.cuda}" if torch.cuda else f"ROCm {torch.hip}" if torch.hip else "CPU only"
    built += f", cuDNN {torch.cudnn}" if torch.cudnn else ""
    built += ", debug build" if torch.debug else ""
    built += f", {torch.accelerator}" if torch.accelerator not in (None, "cuda") else ""
    built += f", {torch.instructions}" if torch.instructions else ""
    built += f", {count(torch.threads, 'thread')}" if torch.threads else ""
    return f"{torch.version} ({built}), {torch.folder}"


def _cpus(cpus: Cpus | Unknown) -> str:
    if isinstance(cpus, Unknown):
        return _or(cpus)
    model = f", {cpus.model}" if cpus.model else ""
    if cpus.cores and cpus.sockets:
        model += f", {count(cpus.cores, 'core')} in {count(cpus.sockets, 'socket')}"
    group = f", in the control group {_or(cpus.allowed)}" * (not isinstance(cpus.allowed, Absent))
    limits = f"by affinity {_or(cpus.affinity)}, by quota {_or(cpus.quota)}"
    return f"{cpus.count}{model}{group}, {limits}"


def _memory(memory: Memory | Unknown) -> str:
    if isinstance(memory, Unknown):
        return _or(memory)
    limit = memory.limit if not isinstance(memory.limit, int) else in_bytes(memory.limit)
    return f"{in_bytes(memory.total)}, {in_bytes(memory.available)} available, limit {_or(limit)}"


def _limits(environment: Environment) -> Iterator[tuple[str, str]]:
    shared, limits = environment.shared_memory, environment.limits
    if isinstance(shared, Absent | Unknown):
        yield "/dev/shm", _or(shared)
    else:
        space = f"{in_bytes(shared.size)}, {in_bytes(shared.free)} free"
        trial = f"a file of {in_bytes(shared.tried)} {_yes(shared.takes_it)}"
        yield "/dev/shm", f"{space}, writing {_yes(shared.writable)}, {trial}"
    if isinstance(limits, Unknown):
        yield "limits", _or(limits)
        return
    locked = limits.locked_memory.soft
    yield (
        "limits",
        f"open files {_soft(limits.open_files)}, processes {_soft(limits.processes)}, "
        f"locked memory {'unlimited' if locked is None else in_bytes(locked)}, "
        f"tasks {_or(limits.tasks_allowed)}",
    )


def _network(environment: Environment) -> Iterator[tuple[str, str]]:
    interfaces, host, master = environment.interfaces, environment.hostname, environment.master
    if isinstance(interfaces, Unknown):
        yield "interfaces", _or(interfaces)
    else:
        for one in interfaces:
            state = ("" if one.up else "down, ") + (f"{one.inner}, " if one.inner else "")
            yield f"interface {one.name}", state + (", ".join(one.addresses) or "no address")
    if isinstance(host, Unknown):
        yield "host name", _or(host)
    else:
        yield "host name", f"{host.name}, which is {_or(host.addresses)}"
    if not isinstance(master, Absent | Unknown):
        where = "this machine" if master.local else _or(master.addresses)
        tried = "" if master.answer == "not tried" else f", tried: {master.answer}"
        yield "master", f"{master.address}, which is {where}{tried}"
    listeners = environment.listeners
    if isinstance(listeners, Unknown):
        yield "listeners", _or(listeners)
    else:
        for listener in listeners:
            yield f"port {listener.port}", f"taken by {listener.process}"


def _or(value: object) -> str:
    if isinstance(value, Absent):
        return f"none ({value.absent})"
    if isinstance(value, Unknown):
        return f"not checked ({value.unknown})"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _soft(limit: Limit) -> str:
    return "unlimited" if limit.soft is None else str(limit.soft)


def _unknowns(value: object) -> Iterator[Unknown]:
    if isinstance(value, Unknown):
        yield value
    elif isinstance(value, BaseModel):
        for _, inner in value:
            yield from _unknowns(inner)
    elif isinstance(value, tuple):
        for inner in value:
            yield from _unknowns(inner)
