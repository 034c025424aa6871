"""Interfaces and the host name."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from ddpdoctor.catalog import Finding, Severity
from ddpdoctor.environment.checks.finding import exported, finding, origin, setting, taken_away
from ddpdoctor.environment.checks.job import spans_nodes
from ddpdoctor.environment.model import (
    Environment,
    HostName,
    Interface,
    Master,
    SetVariable,
    Torch,
    Unknown,
)


def wrong_interface(environment: Environment) -> Iterator[Finding]:
    """DDP107: GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME names what cannot be used."""
    interfaces = environment.interfaces
    if isinstance(interfaces, Unknown):
        return
    for name, judge in (
        ("GLOO_SOCKET_IFNAME", _gloo),
        ("NCCL_SOCKET_IFNAME", _nccl),
        ("TP_SOCKET_IFNAME", _tensorpipe),
    ):
        variable = environment.variable(name)
        if variable and variable.value and not variable.redacted:
            yield from judge(environment, variable, interfaces)


def loopback_down(environment: Environment) -> Iterator[Finding]:
    """DDP107: no loopback, on which the ranks of a machine, and torchrun with them, meet."""
    if isinstance(environment.interfaces, Unknown):
        return
    inner = [one for one in environment.interfaces if one.loopback]
    if not inner or any(one.up and one.addresses for one in inner):
        return
    name = inner[0].name
    yield finding(
        "DDP107",
        "error",
        f"the loopback interface {name} is down",
        "Bring it up: in a network namespace of its own, nobody else does.",
        notes=("ranks of one machine meet there, and torchrun --standalone does",),
        commands=(f"ip link set {shlex.quote(name)} up",),
    )


def _gloo(
    environment: Environment, variable: SetVariable, interfaces: tuple[Interface, ...]
) -> Iterator[Finding]:
    by_name = {interface.name: interface for interface in interfaces}
    names = variable.value.split(",")
    for name in names:
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
            commands=taken_away(variable),
        )
    chosen = [by_name[name] for name in names if name in by_name]
    yield from _down(environment, variable, chosen)
    yield from _loopback_only(environment, variable, chosen)


def _tensorpipe(
    environment: Environment, variable: SetVariable, interfaces: tuple[Interface, ...]
) -> Iterator[Finding]:
    if any(one.name == variable.value and one.addresses for one in interfaces):
        return
    several = spans_nodes(environment)
    yield finding(
        "DDP107",
        "warning" if several else "info",
        f"{setting(variable.name, variable.value)} is no interface with an address here",
        f"Name one of {_usable(interfaces)}, or none.",
        notes=(
            "torch.distributed.rpc warns, and takes 127.0.0.1 instead",
            "no other node can reach that" if several else "harmless while all processes run here",
        ),
        commands=taken_away(variable),
    )


def _down(
    environment: Environment, variable: SetVariable, chosen: Iterable[Interface]
) -> Iterator[Finding]:
    several = spans_nodes(environment)
    for interface in chosen:
        if interface.up or not interface.addresses:
            continue
        yield finding(
            "DDP107",
            "warning" if several else "info",
            f"{variable.name} names {interface.name!r}, which is down or has no link",
            f"Name one of {_usable(environment.interfaces)}, or bring it up and plug it in.",
            notes=(
                "ranks on other nodes cannot reach this one through it"
                if several
                else "harmless while all ranks run here: their kernel keeps what they send",
            ),
            commands=(f"ip link set {shlex.quote(interface.name)} up",),
        )


def _nccl(
    environment: Environment, variable: SetVariable, interfaces: tuple[Interface, ...]
) -> Iterator[Finding]:
    if chosen := nccl_interfaces(interfaces, variable.value):
        yield from _loopback_only(environment, variable, chosen)
        return
    unused = environment.lacks_nccl
    yield finding(
        "DDP107",
        "info" if unused else "error",
        f"{setting(variable.name, variable.value)} matches no usable interface",
        f"Name one of {_usable(interfaces)}, or none.",
        notes=(
            "NCCL stops with: Bootstrap : no socket interface found",
            "it is a list of prefixes; = before it means exact names, ^ means all but these",
            *(("harmless here: torch has no NCCL, and gloo does not read it",) if unused else ()),
            *origin(variable),
        ),
        commands=taken_away(variable),
    )


def nccl_interfaces(interfaces: tuple[Interface, ...] | Unknown, value: str) -> list[Interface]:
    """Those that NCCL uses where NCCL_SOCKET_IFNAME has this value; none where none is known."""
    if isinstance(interfaces, Unknown):
        return []
    return [one for one in interfaces if one.addresses and one.up and _nccl_takes(value, one.name)]


def _nccl_takes(value: str, name: str) -> bool:
    excluding = value.startswith("^")
    rest = value.removeprefix("^")
    exact = rest.startswith("=")
    patterns = rest.removeprefix("=").split(",")
    matches = any(name == p if exact else name.startswith(p) for p in patterns if p)
    return matches != excluding


def _loopback_only(
    environment: Environment, variable: SetVariable, chosen: Iterable[Interface]
) -> Iterator[Finding]:
    used = list(chosen)
    if used and all(interface.loopback for interface in used) and spans_nodes(environment):
        yield finding(
            "DDP107",
            "warning",
            f"{setting(variable.name, variable.value)} keeps to the loopback, on several nodes",
            f"Name one of {_usable(environment.interfaces)}, or none.",
            notes=(
                "ranks on different nodes cannot reach each other through it",
                *origin(variable),
            ),
            commands=taken_away(variable),
        )


def _usable(interfaces: tuple[Interface, ...] | Unknown) -> str:
    if isinstance(interfaces, Unknown):
        return "the interfaces of `ip addr`"
    return ", ".join(i.name for i in interfaces if i.up and i.addresses) or "no interface at all"


def unanswered_master(environment: Environment) -> Iterator[Finding]:
    """DDP108: another machine that does not answer at MASTER_ADDR and MASTER_PORT."""
    master, port = environment.master, environment.value("MASTER_PORT")
    if not isinstance(master, Master) or master.answer not in _SILENCES:
        return
    newer = _newer(environment)
    if newer and newer == master.addresses:
        return  # what is missing here is IPv6, and has a finding of its own
    if _hosts_the_store(environment):
        launched = environment.value("SLURM_LAUNCH_NODE_IPADDR") == master.address
        yield finding(
            "DDP108",
            "warning",
            f"{setting('MASTER_ADDR', master.address)} is no address of this machine, and RANK=0",
            "Name this machine in MASTER_ADDR, or give rank 0 to the one that is named.",
            notes=(
                "rank 0 listens on its own machine; all look for it there, itself too",
                "every rank fails, after the timeout, unless something forwards that address here",
                *(("it is SLURM_LAUNCH_NODE_IPADDR: where srun runs, not rank 0",) * launched),
            ),
            certainty="evidence",
        )
        return
    severity, how, why = _SILENCES[master.answer]
    yield finding(
        "DDP108",
        severity,
        f"{setting('MASTER_ADDR', master.address)} port {port}: {how}",
        "Name the first node by an address that this one reaches, and open the port.",
        notes=(why, "torch says of all of these only that the client socket has timed out"),
        certainty="evidence" if severity != "error" else "proven",
    )


def _hosts_the_store(environment: Environment) -> bool:
    # A service of Kubernetes has an address that is nobody's, and leads to the pod.
    return (
        environment.integer("RANK") == 0
        and environment.value("TORCHELASTIC_USE_AGENT_STORE") != "True"
        and "Kubernetes" not in environment.context
    )


_SILENCES: dict[str, tuple[Severity, str, str]] = {
    "no route": ("error", "no way leads there", "the kernel refuses to send anything there"),
    "silence": (
        "warning",
        "no answer",
        "a firewall drops what is sent there, or the machine is off: one that is there refuses",
    ),
    "refused": (
        "info",
        "nobody listens yet",
        "harmless while rank 0 has not started: the others wait for it",
    ),
}


def no_ipv6(environment: Environment) -> Iterator[Finding]:
    """DDP108: IPv6 is asked for, and no interface here has an address of it."""
    if isinstance(environment.interfaces, Unknown) or _has_ipv6(environment.interfaces):
        return
    master, newer = environment.master, _newer(environment)
    if newer and isinstance(master, Master):
        alone = newer == master.addresses
        yield finding(
            "DDP108",
            "error" if alone else "info",
            f"{setting('MASTER_ADDR', master.address)} needs IPv6, which is not here",
            "Name the first node by its IPv4 address, or give this machine IPv6.",
            notes=(
                f"its addresses: {_shown(master.addresses)}",
                "no interface but the loopback has an IPv6 address",
                *(() if alone else ("harmless: the IPv4 address is tried next",)),
            ),
        )
    family = environment.variable("NCCL_SOCKET_FAMILY")
    if family and family.value.upper() == "AF_INET6":
        unused = environment.lacks_nccl
        yield finding(
            "DDP107",
            "info" if unused else "error",
            "NCCL_SOCKET_FAMILY=AF_INET6, and no interface has an IPv6 address",
            "Remove it, or give this machine IPv6.",
            notes=(
                "NCCL stops with: Bootstrap : no socket interface found",
                *(("harmless here: torch has no NCCL",) if unused else ()),
                *origin(family),
            ),
            commands=taken_away(family),
        )


def _newer(environment: Environment) -> tuple[str, ...]:
    """The IPv6 addresses of a master elsewhere, where no interface here has one."""
    master, interfaces = environment.master, environment.interfaces
    if isinstance(interfaces, Unknown) or _has_ipv6(interfaces):
        return ()
    if not isinstance(master, Master) or master.local or isinstance(master.addresses, Unknown):
        return ()
    return tuple(one for one in master.addresses if ":" in one)


def _shown(addresses: tuple[str, ...] | Unknown) -> str:
    return addresses.unknown if isinstance(addresses, Unknown) else ", ".join(addresses)


def _has_ipv6(interfaces: tuple[Interface, ...]) -> bool:
    usable = (one for one in interfaces if one.up and not one.loopback)
    return any(
        ":" in address and not address.lower().startswith("fe80")
        for one in usable
        for address in one.addresses
    )


def inner_interfaces(environment: Environment) -> Iterator[Finding]:
    """DDP107: on several nodes, interfaces that lead to no other machine, and nothing named."""
    if isinstance(environment.interfaces, Unknown) or not spans_nodes(environment):
        return
    usable = [one for one in environment.interfaces if one.up and one.addresses]
    inner = [one for one in usable if one.inner]
    host = environment.hostname
    if environment.variable("GLOO_SOCKET_IFNAME") is None and isinstance(host, HostName):
        first = _first(host)
        for one in inner:
            if first in one.addresses:
                yield finding(
                    "DDP107",
                    "warning",
                    f"this host's name leads to {one.name}, a {one.inner}, on several nodes",
                    "Set GLOO_SOCKET_IFNAME to the interface that the nodes share.",
                    notes=(
                        f"gloo tells its peers to connect to {first}",
                        "others reach it only if this tunnel or bridge leads to them",
                    ),
                    certainty="evidence",
                )
    has_nccl = isinstance(environment.torch, Torch) and "nccl" in environment.torch.backends
    if inner and has_nccl and environment.variable("NCCL_SOCKET_IFNAME") is None:
        yield finding(
            "DDP107",
            "info",
            f"{len(inner)} of {len(usable)} interfaces may lead to no other node",
            "Set NCCL_SOCKET_IFNAME to the one that the nodes share.",
            notes=(
                *(f"{one.name} is a {one.inner}" for one in inner[:6]),
                "harmless if NCCL takes another: at NCCL_DEBUG=INFO it says which",
            ),
        )


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
        commands=_only_way_out(environment),
        certainty="proven" if several and host.loopback else "evidence",
    )


def _only_way_out(environment: Environment) -> tuple[str, ...]:
    """The command that names the one interface which can lead to other machines, if it is one."""
    interfaces = environment.interfaces if isinstance(environment.interfaces, tuple) else ()
    ways = [i.name for i in interfaces if i.up and i.addresses and not (i.loopback or i.inner)]
    return (exported("GLOO_SOCKET_IFNAME", ways[0]),) if len(ways) == 1 else ()


def _first(host: HostName) -> str:
    return host.addresses[0] if isinstance(host.addresses, tuple) else ""
