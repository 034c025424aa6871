"""Settings with which NCCL, or PyTorch on top of it, does not start."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddpdoctor.catalog import Finding
from ddpdoctor.environment.checks.finding import finding, origin, setting, taken_away, unset
from ddpdoctor.environment.model import Environment
from ddpdoctor.environment.variables import known

_OWN_NETWORKS = ("ib", "socket")
_DIGITS = re.compile(r"\s*([+-]?)(0x[0-9a-f]+|[0-9]+)", re.IGNORECASE)


def no_fast_network(environment: Environment) -> Iterator[Finding]:
    """DDP704: NCCL_NET=IB, which NCCL then must have, and what takes it away."""
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


def no_such_network(environment: Environment) -> Iterator[Finding]:
    """DDP703: NCCL_NET names a network that neither NCCL nor a plugin has."""
    network, plugins = environment.variable("NCCL_NET"), environment.net_plugins
    if network is None or not network.value or network.redacted or plugins:
        return  # what is not known of plugins is as if there were one
    if network.value.lower() in _OWN_NETWORKS or environment.variable("NCCL_NET_PLUGIN"):
        return
    unused = environment.lacks_nccl
    yield finding(
        "DDP703",
        "info" if unused else "error",
        f"{setting(network.name, network.value)} is no network of NCCL's",
        "Remove it: NCCL takes the fastest network that there is.",
        notes=(
            "NCCL stops with: Failed to initialize any NET plugin",
            "its own are IB and Socket, and no plugin (libnccl-net.so) that would bring another"
            " is where the linker looks",
            known()[network.name].reader,
            *(("harmless here: torch has no NCCL",) if unused else ()),
            *origin(network),
        ),
        commands=taken_away(network),
    )


def calls_that_do_not_wait(environment: Environment) -> Iterator[Finding]:
    """DDP704: NCCL_COMM_BLOCKING=0, of which PyTorch is not told."""
    blocking = environment.variable("NCCL_COMM_BLOCKING")
    if blocking is None or blocking.redacted or _as_c_reads(blocking.value):
        return
    if environment.is_on("TORCH_NCCL_USE_COMM_NONBLOCKING"):
        return
    unused = environment.lacks_nccl
    yield finding(
        "DDP704",
        "info" if unused else "error",
        f"{setting(blocking.name, blocking.value)}, and PyTorch takes NCCL's calls to wait",
        "Remove it, or set TORCH_NCCL_USE_COMM_NONBLOCKING=1 too.",
        notes=(
            "init fails: Attempt to use communicator before the previous operation returned",
            known()[blocking.name].reader,
            *(("harmless here: torch has no NCCL",) if unused else ()),
            *origin(blocking),
        ),
        commands=taken_away(blocking),
    )


def _as_c_reads(value: str) -> int:
    """As strtoll does with base 0: what begins with no number is 0."""
    digits = _DIGITS.match(value)
    return int(digits[2], 16 if digits[2].lower().startswith("0x") else 10) if digits else 0
