"""Settings of which one undoes the other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddpdoctor.catalog import Finding
from ddpdoctor.environment.checks.finding import exported, finding, setting, taken_away, unset
from ddpdoctor.environment.checks.job import local_ranks
from ddpdoctor.environment.checks.network import nccl_interfaces
from ddpdoctor.environment.model import Environment, SetVariable
from ddpdoctor.environment.variables import known

_MOST_SOCKETS = 64
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
    yield from _unused_for_infiniband(environment)


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
    waits = _in_force(environment, "TORCH_NCCL_BLOCKING_WAIT")
    if waits and environment.is_on(waits.name) and _dumps(environment):
        yield finding(
            "DDP704",
            "warning",
            f"{waits.name}=1 undoes TORCH_NCCL_DUMP_ON_TIMEOUT=1",
            f"Remove {waits.name}.",
            notes=("PyTorch starts no watchdog thread where waits block, and it is what dumps",),
            commands=unset(waits.name),
            certainty="evidence",
        )


def _dump_without_recorder(environment: Environment) -> Iterator[Finding]:
    size = _in_force(environment, "TORCH_FR_BUFFER_SIZE")
    if size and environment.integer(size.name) == 0 and _dumps(environment):
        yield finding(
            "DDP704",
            "warning",
            f"{size.name}=0 undoes TORCH_NCCL_DUMP_ON_TIMEOUT=1",
            f"Remove {size.name}: the default keeps the last 2000 collectives.",
            notes=("PyTorch's flight recorder is off at 0: there is nothing to dump",),
            commands=unset(size.name),
        )


def _dumps(environment: Environment) -> bool:
    return environment.is_on("TORCH_NCCL_DUMP_ON_TIMEOUT")


def _in_force(environment: Environment, name: str) -> SetVariable | None:
    """The variable of that name or, where it is not set, of its old name."""
    names = (name, *(row.name for row in known().values() if row.instead == name))
    return next(filter(None, map(environment.variable, names)), None)


def _subsystems_without_debug(environment: Environment) -> Iterator[Finding]:
    subsystems = environment.value("NCCL_DEBUG_SUBSYS")
    level = (environment.value("NCCL_DEBUG") or "").upper()
    if subsystems and level not in ("INFO", "ABORT", "TRACE"):
        yield finding(
            "DDP704",
            "info",
            f"{setting('NCCL_DEBUG_SUBSYS', subsystems)} has no effect without NCCL_DEBUG=INFO",
            "Set NCCL_DEBUG=INFO too, or remove it.",
            notes=(f"harmless; it is {known()['NCCL_DEBUG_SUBSYS'].reader}",),
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
                f"it is {known()['NCCL_OOB_NET_IFNAME'].reader}, as mlx5_1",
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
            commands=(exported("NCCL_DEBUG_FILE", file + missing),),
            certainty="evidence",
        )


def _no_error_handling(environment: Environment) -> Iterator[Finding]:
    handling = _in_force(environment, "TORCH_NCCL_ASYNC_ERROR_HANDLING")
    if handling and environment.integer(handling.name) == 0:
        yield finding(
            "DDP704",
            "warning",
            f"{handling.name}=0 makes timeouts do nothing",
            "Remove it.",
            notes=("PyTorch: a rank that waits for a dead one then waits for ever",),
            commands=unset(handling.name),
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


def _unused_for_infiniband(environment: Environment) -> Iterator[Finding]:
    """Settings of a network that other settings keep NCCL off."""
    network = environment.value("NCCL_NET") or ""
    if environment.integer("NCCL_IB_DISABLE"):
        off = "NCCL_IB_DISABLE=1"
    elif network.lower() == "socket":
        off = setting("NCCL_NET", network)
    else:
        return
    of_ib = [one for one in environment.variables if _is_for_infiniband(one)]
    if of_ib:
        more = f" and {len(of_ib) - 1} more" if of_ib[1:] else ""
        yield finding(
            "DDP704",
            "info",
            f"{setting(of_ib[0].name, of_ib[0].value)}{more} has no effect with {off}",
            "Keep one of the two.",
            notes=(
                *(f"{one.name} is {known()[one.name].reader}" for one in of_ib),
                f"harmless, but with {off} NCCL takes TCP sockets, which are much slower",
            ),
            commands=[command for one in of_ib for command in taken_away(one)],
            certainty="evidence",
        )


def _is_for_infiniband(variable: SetVariable) -> bool:
    row = known().get(variable.name)
    return (
        variable.name.startswith("NCCL_IB_")
        and variable.name != "NCCL_IB_DISABLE"
        and row is not None
        and row.read_by == "NCCL"
    )
