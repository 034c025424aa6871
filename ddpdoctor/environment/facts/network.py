"""Interfaces, names and ports."""

from __future__ import annotations

import errno
import ipaddress
import re
import socket
import threading
from pathlib import Path
from typing import Literal, get_args

import psutil

from ddpdoctor.environment.facts.machine import Machine, NoAnswer
from ddpdoctor.environment.model import (
    TORCHRUN_PORT,
    Absent,
    Answer,
    HostName,
    Interface,
    Listener,
    Master,
    Unknown,
)

_RESOLVER_SECONDS = 5.0
_CONNECTION_SECONDS = 0.7
_TRIED = 3
_NO_ROUTE = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
# By the kernel's number of its link layer: none, as tun and WireGuard have; IPIP, IPv6, SIT, GRE.
_TUNNELS = ("65534", "768", "769", "776", "778", "823")
_ADDRESS_FAMILIES = (socket.AF_INET, socket.AF_INET6)


def interfaces(machine: Machine) -> tuple[Interface, ...]:
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
            inner=_inner(machine.root / "sys/class/net" / name),
        )
        for name in sorted(states)
    )


def _inner(device: Path) -> Literal["", "bridge", "tunnel"]:
    if _text(device / "type").strip() in _TUNNELS or "DEVTYPE=vxlan" in _text(device / "uevent"):
        return "tunnel"
    # A bridge with a card in it leads out, as on hosts of virtual machines.
    cards = [port for port in (device / "brif").glob("*") if (port.resolve() / "device").exists()]
    return "bridge" if (device / "bridge").is_dir() and not cards else ""


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


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
    loopback = _is_loopback(addresses)
    known = () if isinstance(addresses, Unknown) else addresses
    local = loopback or not ours.isdisjoint(known)
    port = machine.environ.get("MASTER_PORT", "")
    return Master(
        address=machine.redactor.text(name),
        addresses=addresses,
        loopback=loopback,
        local=local,
        answer=_answer(known, int(port)) if _is_port(port) and not local else "not tried",
    )


def _is_port(text: str) -> bool:
    return re.fullmatch("[0-9]{1,5}", text) is not None and 0 < int(text) < 1 << 16


def _answer(addresses: tuple[str, ...], port: int) -> Answer:
    """What the best of the addresses says: the rendezvous tries them all, too."""
    answers = [_connect(address, port) for address in addresses[:_TRIED]]
    return min(answers, key=get_args(Answer).index, default="not tried")


def _connect(address: str, port: int) -> Answer:
    try:
        with socket.create_connection((address, port), timeout=_CONNECTION_SECONDS):
            return "accepted"
    except TimeoutError:
        return "silence"
    except ConnectionRefusedError:
        return "refused"
    except OSError as error:
        return "no route" if error.errno in _NO_ROUTE else "not tried"


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
