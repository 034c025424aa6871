"""Interfaces and the host name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ddpdoctor.catalog import Finding
from ddpdoctor.environment.checks.finding import finding, setting, unset
from ddpdoctor.environment.checks.job import spans_nodes
from ddpdoctor.environment.model import Environment, HostName, Interface, Torch, Unknown


def wrong_interface(environment: Environment) -> Iterator[Finding]:
    """DDP107: GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME names what cannot be used."""
    interfaces = environment.interfaces
    if isinstance(interfaces, Unknown):
        return
    gloo = environment.value("GLOO_SOCKET_IFNAME")
    nccl = environment.value("NCCL_SOCKET_IFNAME")
    if gloo:
        yield from _gloo(environment, gloo, interfaces)
    if nccl:
        yield from _nccl(environment, nccl, interfaces)


def _gloo(
    environment: Environment, value: str, interfaces: tuple[Interface, ...]
) -> Iterator[Finding]:
    by_name = {interface.name: interface for interface in interfaces}
    for name in value.split(","):
        interface = by_name.get(name)
        if interface is not None and interface.addresses:
            continue
        state = "does not exist" if interface is None else "has no address"
        yield finding(
            "DDP107",
            "error",
            f"GLOO_SOCKET_IFNAME names {name!r}, which {state} here",
            f"Name one of {_usable(interfaces)}, or none.",
            notes=(
                f"init_process_group('gloo') raises: Unable to find address for: {name}",
                "names are exact; blanks count",
            ),
            commands=unset("GLOO_SOCKET_IFNAME"),
        )
    chosen = [by_name[name] for name in value.split(",") if name in by_name]
    yield from _loopback_only(environment, "GLOO_SOCKET_IFNAME", value, chosen)


def _nccl(
    environment: Environment, value: str, interfaces: tuple[Interface, ...]
) -> Iterator[Finding]:
    chosen = [
        interface
        for interface in interfaces
        if interface.addresses and interface.up and _nccl_takes(value, interface.name)
    ]
    if chosen:
        yield from _loopback_only(environment, "NCCL_SOCKET_IFNAME", value, chosen)
        return
    unused = isinstance(environment.torch, Torch) and "nccl" not in environment.torch.backends
    yield finding(
        "DDP107",
        "info" if unused else "error",
        f"{setting('NCCL_SOCKET_IFNAME', value)} matches no usable interface",
        f"Name one of {_usable(interfaces)}, or none.",
        notes=(
            "NCCL stops with: Bootstrap : no socket interface found",
            "it is a list of prefixes; = before it means exact names, ^ means all but these",
            *(("harmless here: torch has no NCCL, and gloo does not read it",) if unused else ()),
        ),
        commands=unset("NCCL_SOCKET_IFNAME"),
    )


def _nccl_takes(value: str, name: str) -> bool:
    excluding = value.startswith("^")
    rest = value.removeprefix("^")
    exact = rest.startswith("=")
    patterns = rest.removeprefix("=").split(",")
    matches = any(name == p if exact else name.startswith(p) for p in patterns if p)
    return matches != excluding


def _loopback_only(
    environment: Environment, variable: str, value: str, chosen: Iterable[Interface]
) -> Iterator[Finding]:
    used = list(chosen)
    if used and all(interface.loopback for interface in used) and spans_nodes(environment):
        yield finding(
            "DDP107",
            "warning",
            f"{setting(variable, value)} keeps to the loopback interface, on several nodes",
            f"Name one of {_usable(environment.interfaces)}, or none.",
            notes=("ranks on different nodes cannot reach each other through it",),
            commands=unset(variable),
        )


def _usable(interfaces: tuple[Interface, ...] | Unknown) -> str:
    if isinstance(interfaces, Unknown):
        return "the interfaces of `ip addr`"
    return ", ".join(i.name for i in interfaces if i.up and i.addresses) or "no interface at all"


def hostname(environment: Environment) -> Iterator[Finding]:
    """DDP708: the host name does not lead to an address that other machines can reach."""
    host = environment.hostname
    if isinstance(host, Unknown) or environment.value("GLOO_SOCKET_IFNAME"):
        return
    if host.loopback:
        problem = f"this host's name, {host.name}, resolves to {_first(host)}"
    elif isinstance(host.addresses, Unknown):
        problem = f"this host's name, {host.name}, does not resolve"
    else:
        return
    several = spans_nodes(environment)
    yield finding(
        "DDP708",
        "warning" if several else "info",
        problem,
        "Set GLOO_SOCKET_IFNAME to the interface that the nodes share, or mend /etc/hosts.",
        notes=(
            "gloo resolves the host name, and tells its peers to connect to what comes of it",
            *(() if several else ("harmless as long as all ranks run on this machine",)),
        ),
        certainty="proven" if several and host.loopback else "evidence",
    )


def _first(host: HostName) -> str:
    return host.addresses[0] if isinstance(host.addresses, tuple) else ""
