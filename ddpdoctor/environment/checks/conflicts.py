"""Settings of which one undoes the other."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from ddpdoctor.catalog import Finding
from ddpdoctor.environment.checks.finding import finding, setting, unset
from ddpdoctor.environment.checks.job import local_ranks
from ddpdoctor.environment.checks.network import nccl_interfaces
from ddpdoctor.environment.model import Environment
from ddpdoctor.environment.variables import known

_MOST_SOCKETS = 64
_ON = ("y", "yes", "1", "t", "true")
_STREAM = re.compile(r"/dev/(stdout|stderr|null|tty\w*|(fd|pts)/\d+)")
"""What is no file, and is written line by line."""


def conflicting(environment: Environment) -> Iterator[Finding]:
    """DDP704: pairs that contradict each other."""
    yield from _old_and_new(environment)
    yield from _two_allocators(environment)
    yield from _dump_without_watchdog(environment)
    yield from _dump_without_recorder(environment)
    yield from _subsystems_without_debug(environment)
    yield from _out_of_band_unused(environment)
    yield from _one_file_for_all(environment)
    yield from _no_error_handling(environment)
    yield from _more_at_least_than_at_most(environment)
    yield from _too_many_sockets(environment)
    yield from _no_fast_network(environment)


def _old_and_new(environment: Environment) -> Iterator[Finding]:
    for variable in environment.variables:
        if variable.status != "legacy" or variable.name.endswith("_ALLOC_CONF"):
            continue  # of the allocator's both names count, each for a part
        new = known()[variable.name].instead
        value = environment.value(new)
        if value is None or value == variable.value:
            continue
        yield finding(
            "DDP704",
            "warning",
            f"{setting(variable.name, variable.value)} is overruled by its new name",
            f"Keep {new} alone.",
            notes=(f"{setting(new, value)} is the same setting under its new name, and counts",),
            commands=unset(variable.name),
        )


def _two_allocators(environment: Environment) -> Iterator[Finding]:
    new = environment.value("PYTORCH_ALLOC_CONF")
    old = environment.value("PYTORCH_CUDA_ALLOC_CONF")
    if new is not None and old is not None and new != old:
        yield finding(
            "DDP704",
            "warning",
            "PYTORCH_ALLOC_CONF and PYTORCH_CUDA_ALLOC_CONF differ",
            "Keep one of them.",
            notes=("they are the new and the old name of one setting: only one of them counts",),
            commands=unset("PYTORCH_CUDA_ALLOC_CONF"),
        )


def _dump_without_watchdog(environment: Environment) -> Iterator[Finding]:
    if _on(environment, "TORCH_NCCL_BLOCKING_WAIT") and _on(
        environment, "TORCH_NCCL_DUMP_ON_TIMEOUT"
    ):
        yield finding(
            "DDP704",
            "warning",
            "TORCH_NCCL_BLOCKING_WAIT=1 undoes TORCH_NCCL_DUMP_ON_TIMEOUT=1",
            "Remove TORCH_NCCL_BLOCKING_WAIT.",
            notes=("with blocking waits there is no watchdog thread, and it is what dumps",),
            commands=unset("TORCH_NCCL_BLOCKING_WAIT"),
            certainty="evidence",
        )


def _dump_without_recorder(environment: Environment) -> Iterator[Finding]:
    size = environment.integer("TORCH_FR_BUFFER_SIZE")
    if size == 0 and _on(environment, "TORCH_NCCL_DUMP_ON_TIMEOUT"):
        yield finding(
            "DDP704",
            "warning",
            "TORCH_FR_BUFFER_SIZE=0 undoes TORCH_NCCL_DUMP_ON_TIMEOUT=1",
            "Remove TORCH_FR_BUFFER_SIZE: the default keeps the last 2000 collectives.",
            notes=("0 switches the flight recorder off: there is nothing to dump",),
            commands=unset("TORCH_FR_BUFFER_SIZE"),
        )


def _subsystems_without_debug(environment: Environment) -> Iterator[Finding]:
    subsystems = environment.value("NCCL_DEBUG_SUBSYS")
    level = (environment.value("NCCL_DEBUG") or "").upper()
    if subsystems and level not in ("INFO", "ABORT", "TRACE"):
        yield finding(
            "DDP704",
            "info",
            f"{setting('NCCL_DEBUG_SUBSYS', subsystems)} has no effect without NCCL_DEBUG=INFO",
            "Set NCCL_DEBUG=INFO too, or remove it.",
            notes=("harmless",),
            commands=("export NCCL_DEBUG=INFO",),
        )


def _out_of_band_unused(environment: Environment) -> Iterator[Finding]:
    names = environment.value("NCCL_OOB_NET_IFNAME")
    if names and environment.integer("NCCL_OOB_NET_ENABLE") in (None, 0):
        yield finding(
            "DDP704",
            "info",
            "NCCL_OOB_NET_IFNAME has no effect without NCCL_OOB_NET_ENABLE=1",
            f"Set NCCL_SOCKET_IFNAME={names} if the ranks are to meet there."
            if nccl_interfaces(environment.interfaces, names)
            else "Set NCCL_OOB_NET_ENABLE=1 if the ranks are to meet there, or remove it.",
            notes=(
                "harmless: ranks meet by sockets, on the interfaces of NCCL_SOCKET_IFNAME",
                "with NCCL_OOB_NET_ENABLE=1 it names devices of the fast network, as mlx5_1",
            ),
            commands=unset("NCCL_OOB_NET_IFNAME"),
        )


def _one_file_for_all(environment: Environment) -> Iterator[Finding]:
    file, ranks = environment.value("NCCL_DEBUG_FILE"), local_ranks(environment)
    if file is None or _STREAM.fullmatch(file):
        return
    if "%p" not in file and environment.value("NCCL_DEBUG") and ranks and ranks > 1:
        missing = ".%p" if "%h" in file else ".%h.%p"
        yield finding(
            "DDP704",
            "info",
            f"{setting('NCCL_DEBUG_FILE', file)} is one file for {ranks} ranks",
            "Put %h and %p into the name: NCCL writes host and process there.",
            notes=("harmless for training, but they write over each other's lines",),
            commands=(f"export NCCL_DEBUG_FILE={shlex.quote(file + missing)}",),
            certainty="evidence",
        )


def _no_error_handling(environment: Environment) -> Iterator[Finding]:
    if environment.integer("TORCH_NCCL_ASYNC_ERROR_HANDLING") == 0:
        yield finding(
            "DDP704",
            "warning",
            "TORCH_NCCL_ASYNC_ERROR_HANDLING=0 makes timeouts do nothing",
            "Remove it.",
            notes=("a rank that waits for a dead one then waits for ever",),
            commands=unset("TORCH_NCCL_ASYNC_ERROR_HANDLING"),
            certainty="evidence",
        )


def _more_at_least_than_at_most(environment: Environment) -> Iterator[Finding]:
    for what, then in (
        ("NCHANNELS", "NCCL takes the minimum"),
        ("CTAS", "NCCL takes the maximum for both, and says so at INFO alone"),
    ):
        names = f"NCCL_MIN_{what}", f"NCCL_MAX_{what}"
        least, most = (environment.integer(name) for name in names)
        if least is not None and most is not None and least > most > 0:
            yield finding(
                "DDP704",
                "warning",
                f"{names[0]}={least} is more than {names[1]}={most}",
                "Remove both: NCCL chooses by the machine.",
                notes=(then,),
                commands=unset(*names),
                certainty="evidence",
            )


def _too_many_sockets(environment: Environment) -> Iterator[Finding]:
    threads = environment.integer("NCCL_SOCKET_NTHREADS")
    each = environment.integer("NCCL_NSOCKS_PERTHREAD")
    if threads and each and threads > 0 and threads * each > _MOST_SOCKETS:
        yield finding(
            "DDP704",
            "warning",
            f"NCCL_SOCKET_NTHREADS={threads} times NCCL_NSOCKS_PERTHREAD={each} is too much",
            f"Let their product be {_MOST_SOCKETS} at most.",
            notes=(f"NCCL opens {_MOST_SOCKETS} sockets at most, and warns",),
            commands=(f"export NCCL_NSOCKS_PERTHREAD={max(1, _MOST_SOCKETS // threads)}",),
        )


def _no_fast_network(environment: Environment) -> Iterator[Finding]:
    """NCCL_NET=IB, which NCCL then must have, and what takes it away."""
    if (environment.value("NCCL_NET") or "").upper() != "IB":
        return
    disabled = (environment.integer("NCCL_IB_DISABLE") or 0) != 0
    here = environment.fabric
    missing = isinstance(here, tuple) and not any("ACTIVE" in port.state for port in here)
    if not disabled and not missing:
        return
    unused = environment.lacks_nccl
    yield finding(
        "DDP704",
        "info" if unused else "error",
        "NCCL_NET=IB, and NCCL_IB_DISABLE switches it off"
        if disabled
        else "NCCL_NET=IB, and no port of an InfiniBand or RoCE device is active here",
        "Remove NCCL_NET: NCCL takes the fastest network that there is.",
        notes=(
            "NCCL stops with: Failed to initialize any NET plugin",
            *(("harmless here: torch has no NCCL",) if unused else ()),
        ),
        commands=unset("NCCL_NET"),
    )


def _on(environment: Environment, name: str) -> bool:
    return (environment.value(name) or "").lower() in _ON
