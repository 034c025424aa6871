"""Two hosts on one machine: network namespaces, joined by a cable. Needs root and ip.

A cable that delays and loses packets is one of our own, as tc's netem is not in every kernel.
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
    """Hosts 1 and 2, called node01 and node02, which see the same files."""

    def __init__(self, folder: Path, pids: Sequence[int]) -> None:
        self._folder, self._pids = folder, pids

    def on(self, host: int, *command: str | os.PathLike[str]) -> list[str]:
        """What starts the command on that host, in the folder."""
        entered = ["--net", "--uts", "--mount", f"--wd={self._folder}"]
        pid = self._pids[host - 1]
        return ["nsenter", f"--target={pid}", *entered, *map(os.fspath, command)]

    def run(self, host: int, *command: str) -> None:
        """Run a command there to its end. Raises CalledProcessError."""
        subprocess.run(self.on(host, *command), check=True)

    def link(self, *, up: bool) -> None:
        """Plug the cable in or out."""
        self.run(1, "ip", "link", "set", DEVICE, "up" if up else "down")


class Relay:
    """A cable that brings each packet so many seconds late, and loses a share of them."""

    def __init__(self, pids: Sequence[int], delay: float, loss: float) -> None:
        self._pids, self._delay, self._loss = pids, delay, loss
        self._is_cut, self._is_laid = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._carry, name="cable", daemon=True)
        self._thread.start()
        assert self._is_laid.wait(60)

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


@contextmanager
def network(folder: Path, delay: float = 0.0, loss: float = 0.0) -> Iterator[Network]:
    """Both hosts, with such a cable; what runs there has ended before they go."""
    relay = None
    made = ["unshare", "--net", "--uts", "--mount", "sleep", "infinity"]
    sleepers = [subprocess.Popen(made) for _ in (1, 2)]
    try:
        ours = {space: Path(f"/proc/self/ns/{space}").stat().st_ino for space in ("net", "mnt")}
        for sleeper in sleepers:
            for space, own in ours.items():
                while Path(f"/proc/{sleeper.pid}/ns/{space}").stat().st_ino == own:
                    time.sleep(0.01)
        hosts = Network(folder, [sleeper.pid for sleeper in sleepers])
        names = [f"{ADDRESS} {NAME}\n".format(host=host) for host in (1, 2)]
        (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(names))
        if delay or loss:
            relay = Relay([sleeper.pid for sleeper in sleepers], delay, loss)
        else:
            end = f"{DEVICE} netns {sleepers[1].pid}"
            hosts.run(1, *f"ip link add {DEVICE} type veth peer name {end}".split())
        for host in (1, 2):
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
