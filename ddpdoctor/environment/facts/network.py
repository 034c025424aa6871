"""Interfaces, names and ports."""

from __future__ import annotations

import ipaddress
import re
import socket
import threading

import psutil

from ddpdoctor.environment.facts.machine import Machine, NoAnswer
from ddpdoctor.environment.model import (
    TORCHRUN_PORT,
    Absent,
    HostName,
    Interface,
    Listener,
    Master,
    Unknown,
)

_RESOLVER_SECONDS = 5.0
_ADDRESS_FAMILIES = (socket.AF_INET, socket.AF_INET6)


def interfaces(_: Machine) -> tuple[Interface, ...]:
    """All network interfaces, by name. Raises OSError."""
    addresses = psutil.net_if_addrs()
    states = psutil.net_if_stats()
    return tuple(
        Interface(
            name=name,
            addresses=tuple(
                entry.address.partition("%")[0]
                for entry in addresses.get(name, ())
                if entry.family in _ADDRESS_FAMILIES
            ),
            up=states[name].isup,
            loopback="loopback" in states[name].flags.split(","),
        )
        for name in sorted(states)
    )


def hostname(machine: Machine) -> HostName:
    """This machine's name and what it resolves to. Raises OSError."""
    name = socket.gethostname()
    addresses = machine.find(lambda _: _resolve(name))
    return HostName(name=name, addresses=addresses, loopback=_is_loopback(addresses))


def master(machine: Machine) -> Master | Absent:
    """What MASTER_ADDR resolves to."""
    name = machine.environ.get("MASTER_ADDR", "")
    if not name:
        return Absent(absent="MASTER_ADDR is not set")
    addresses = machine.find(lambda _: _resolve(name))
    ours = {address for interface in interfaces(machine) for address in interface.addresses}
    return Master(
        address=machine.redactor.text(name),
        addresses=addresses,
        loopback=_is_loopback(addresses),
        local=not isinstance(addresses, Unknown) and not ours.isdisjoint(addresses),
    )


def listeners(machine: Machine) -> tuple[Listener, ...]:
    """Who listens on MASTER_PORT, or on the port that torchrun takes unless told otherwise.

    Raises psutil.AccessDenied where only root may know.
    """
    wanted = {TORCHRUN_PORT}
    asked = machine.environ.get("MASTER_PORT", "")
    if re.fullmatch("[0-9]{1,5}", asked):
        wanted.add(int(asked))
    found: dict[int, str] = {}
    for connection in psutil.net_connections("tcp"):
        port = connection.laddr.port if connection.laddr else 0
        if connection.status == psutil.CONN_LISTEN and port in wanted:
            found[port] = _owner(connection.pid)
    return tuple(Listener(port=number, process=found[number]) for number in sorted(found))


def _owner(pid: int | None) -> str:
    if pid is None:
        return "a process that we may not look at"
    try:
        return f"{psutil.Process(pid).name()} (pid {pid})"
    except psutil.Error:
        return f"pid {pid}"


def _resolve(name: str) -> tuple[str, ...]:
    """Addresses of a name in the resolver's order. Raises NoAnswer."""
    answer: list[tuple[str, ...] | Exception] = []

    def look_up() -> None:
        try:
            entries = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
            addresses = (str(entry[4][0]).partition("%")[0] for entry in entries)
            answer.append(tuple(dict.fromkeys(addresses)))
        except (OSError, ValueError) as error:
            answer.append(error)

    # In a thread, for a resolver without a reachable server keeps one waiting for half a minute.
    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(_RESOLVER_SECONDS)
    if not answer:
        raise NoAnswer(f"the resolver gave no answer in {_RESOLVER_SECONDS:g} s")
    if isinstance(answer[0], Exception):
        raise NoAnswer(f"it does not resolve: {answer[0]}")
    return answer[0]


def _is_loopback(addresses: tuple[str, ...] | Unknown) -> bool:
    return (
        not isinstance(addresses, Unknown)
        and bool(addresses)
        and ipaddress.ip_address(addresses[0]).is_loopback
    )
