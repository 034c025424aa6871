"""Hosts on one machine: network namespaces, two of them joined by a cable. Needs root and ip.

A cable that delays and loses packets is one of our own, as tc's netem is not in every kernel. More
than two hosts are joined by a switch: a bridge in a namespace of its own.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import select
import struct
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.patience import ENDLESS

DEVICE = "eth0"
"""The network device of each host."""
ADDRESS = "10.7.0.{host}"
NAME = "node0{host}"


def can_make_networks() -> bool:
    """Whether this is possible here."""
    try:
        made = ["unshare", "--net", "ip", "link", "add", "vA", "type", "veth", "peer", "name", "vB"]
        return subprocess.run(made, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


class Network:
    """Hosts 1, 2, ..., called node01, node02, ..., which see the same files."""

    def __init__(self, folder: Path, pids: Sequence[int], *, apart: bool) -> None:
        self._folder, self._pids, self._apart = folder, pids, apart

    def has(self, host: int, process: psutil.Process) -> bool:
        """Whether the process runs on that host."""
        mine, its = (Path(f"/proc/{pid}/ns/net") for pid in (self._pids[host - 1], process.pid))
        with suppress(OSError):
            return mine.readlink() == its.readlink()
        return False

    def on(self, host: int, *command: str | os.PathLike[str]) -> list[str]:
        """What starts the command on that host, in the folder."""
        entered = ["--net", "--uts", "--mount", f"--wd={self._folder}", *["--pid"] * self._apart]
        pid = self._pids[host - 1]
        return ["nsenter", f"--target={pid}", *entered, *map(os.fspath, command)]

    def run(self, host: int, *command: str) -> None:
        """Run a command there to its end. Raises CalledProcessError."""
        subprocess.run(self.on(host, *command), check=True)

    def link(self, host: int = 1, *, up: bool) -> None:
        """Plug the cable of a host in or out."""
        self.run(host, "ip", "link", "set", DEVICE, "up" if up else "down")


class Relay:
    """A cable that brings each packet so many seconds late, and loses a share of them."""

    def __init__(self, pids: Sequence[int], delay: float, loss: float) -> None:
        self._pids, self._delay, self._loss = pids, delay, loss
        self._is_cut, self._is_laid = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._carry, name="cable", daemon=True)
        self._thread.start()
        assert self._is_laid.wait(ENDLESS)

    def cut(self) -> None:
        """Carry no more."""
        self._is_cut.set()
        self._thread.join()

    def _carry(self) -> None:
        ends = [_device(pid) for pid in self._pids]  # a thread of its own: it moves there
        self._is_laid.set()
        late = deque[tuple[float, int, bytes]]()
        while not self._is_cut.is_set():
            for end in select.select(ends, [], [], 0.002)[0]:
                packet, other = os.read(end, 1 << 16), ends[end == ends[0]]
                if random.random() >= self._loss:
                    late.append((time.monotonic() + self._delay, other, packet))
            while late and late[0][0] <= time.monotonic():
                _, other, packet = late.popleft()
                with suppress(OSError):  # that end is down: it is lost
                    os.write(other, packet)
        for end in ends:
            os.close(end)


def _device(pid: int) -> int:
    """What is sent over a network device, made for this, of the namespace of that process."""
    with Path(f"/proc/{pid}/ns/net").open("rb") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
    tap, no_head = 0x2, 0x1000
    fcntl.ioctl(device, 0x400454CA, struct.pack("16sH14x", DEVICE.encode(), tap | no_head))
    return device


def _innermost(pid: int) -> int:
    """The process that such a one has started, if any: it is the one in all the namespaces."""
    return next((child.pid for child in psutil.Process(pid).children()), pid)


def _join(pids: Sequence[int]) -> None:
    """Lay cables from the last of these namespaces, which is the switch, to all others."""
    *hosts, switch = pids
    does = ["ip link add bridge type bridge", "ip link set bridge up"]
    for number, host in enumerate(hosts):
        does.append(f"ip link add port{number} type veth peer name {DEVICE} netns {host}")
        does.append(f"ip link set port{number} master bridge up")
    _do_in(switch, " && ".join(does))


def _do_in(pid: int, does: str) -> None:
    """In the network of that process, which is known by its number here."""
    subprocess.run(["nsenter", f"--target={pid}", "--net", "bash", "-c", does], check=True)


@contextmanager
def network(
    folder: Path, delay: float = 0.0, loss: float = 0.0, *, size: int = 2, apart: bool = False
) -> Iterator[Network]:
    """The hosts; two may have such a cable. What runs there has ended before they go.

    `apart`: they do not see each other's processes. No signal reaches one by what started it.
    """
    relay = None
    made = ["unshare", "--net", "--uts", "--mount"]
    made += ["--pid", "--kill-child", "--mount-proc"] if apart else []
    made += ["sleep", "infinity"]
    numbers = range(1, size + 1)
    sleepers = [subprocess.Popen(made) for _ in (numbers if size == 2 else range(size + 1))]
    try:
        ours = {space: Path(f"/proc/self/ns/{space}").stat().st_ino for space in ("net", "mnt")}
        for sleeper in sleepers:
            for space, own in ours.items():
                while Path(f"/proc/{sleeper.pid}/ns/{space}").stat().st_ino == own:
                    time.sleep(0.01)
            while apart and psutil.Process(_innermost(sleeper.pid)).name() != "sleep":
                time.sleep(0.01)
        pids = [_innermost(sleeper.pid) for sleeper in sleepers]
        hosts = Network(folder, pids, apart=apart)
        names = [f"{ADDRESS} {NAME}\n".format(host=host) for host in numbers]
        (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(names))
        if size != 2:
            _join(pids)
        elif delay or loss:
            relay = Relay(pids, delay, loss)
        else:
            _do_in(pids[0], f"ip link add {DEVICE} type veth peer name {DEVICE} netns {pids[1]}")
        for host in numbers:
            address = ADDRESS.format(host=host)
            does = f"hostname {NAME.format(host=host)} && mount --bind hosts /etc/hosts"
            does += f" && ip addr add {address}/24 dev {DEVICE} && ip link set {DEVICE} up"
            hosts.run(host, "bash", "-c", f"{does} && ip link set lo up")
        yield hosts
    finally:
        if relay is not None:
            relay.cut()
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()
