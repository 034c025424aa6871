"""python -m ddpdoctor.hosts.courier: carries messages between the doctors, by way of a store.

A process of its own: it needs torch, which a doctor does without, and it may block, which a doctor
may not. The first doctor's hosts the store (`torch.distributed.TCPStore`, as torchrun's own). To it
messages go under numbered keys, `DRAWER/in/1`, `DRAWER/in/2`, ...; from it, under `DRAWER/out/1`,
... What the drawer is called, strangers do not know. On stdin and stdout a message is its length in
4 bytes and itself; one of no bytes on stdout says that the connection is new. What it was told in
its first message is a JSON object: host, ports, greeting, drawer and whether it is the first. It
ends when its stdin does.
"""

from __future__ import annotations

import json
import os
import queue
import resource
import socket
import struct
import sys
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, BinaryIO

from ddpdoctor.hosts.messages import MOST

if TYPE_CHECKING:
    from torch._C._distributed_c10d import TCPStore

_LENGTH = struct.Struct("=I")
HEAD = _LENGTH.size
"""Bytes by which a message is longer on its way."""
_SLOW = timedelta(seconds=5)
"""For one operation of the store; a link that comes back within it has lost nothing."""
_WAIT = 1.0
"""Seconds for a message to come, before it is looked whether all is well."""
_LONGEST_WAIT = 8.0
"""The same, where messages are seen to be rarer: of thousands of hosts each look is a burden."""
_KNOCK = 2.0
"""Seconds in which somebody must answer at a port."""
_AGAIN = 1.0
"""Seconds between two tries to connect."""
_MUTE = 20.0
"""Seconds for which a port is left alone that somebody else seems to have."""
_AT_ONCE = 256
"""Messages that are fetched together, at most."""
_KEPT = 256
"""Messages that stay in the store for whoever is slow to read them."""
_MEMORY = 4 << 30
"""Bytes that a courier may have."""
_LINGER = 1.0
"""Seconds that the store stays for the last message to be read."""


def read(stream: BinaryIO) -> bytes | None:
    """The next message; None at the end, or where it is none of ours."""
    head = stream.read(HEAD)
    if len(head) < HEAD or (length := _LENGTH.unpack(head)[0]) > MOST:
        return None
    body = stream.read(length)
    return body if len(body) == length else None


def write(stream: BinaryIO, message: bytes) -> None:
    """Send a message on. Raises OSError."""
    stream.write(_LENGTH.pack(len(message)) + message)
    stream.flush()


class _Courier:
    def __init__(
        self, host: str, ports: list[int], greeting: str, drawer: str, *, first: bool
    ) -> None:
        self._host, self._ports, self._greeting, self._first = host, ports, greeting, first
        ways = f"{drawer}/out", f"{drawer}/in"
        self._mine, self._theirs = ways if first else reversed(ways)
        self._store: TCPStore | None = None
        self._hosted: TCPStore | None = None
        self._port = 0
        self._wait = _WAIT
        self._mute_until: dict[int, float] = {}

    def carry_out(self) -> None:
        """What comes on stdin goes to the store, until stdin ends."""
        while (message := read(sys.stdin.buffer)) is not None:
            store = self._store
            if store is None:
                continue  # the doctor begins again when there is a connection
            try:
                number = store.add(self._mine, 1)
                store.set(f"{self._mine}/{number}", message)  # type: ignore[arg-type]
                if number > _KEPT and self._first:
                    store.delete_key(f"{self._mine}/{number - _KEPT}")
            except RuntimeError:
                self._store = None
        if self._first:
            time.sleep(_LINGER)

    def carry_in(self) -> None:
        """What comes to the store goes to stdout, for ever."""
        import torch.distributed  # noqa: F401 - takes seconds, which no port is to be blamed for

        while True:
            if (reading := self._connected()) is None:
                time.sleep(_AGAIN)
                continue
            try:
                if self._first:
                    self._mend(reading)
                last = 0 if self._first else reading.add(self._theirs, 0)
                self._store = self._client(self._port)
                write(sys.stdout.buffer, b"")
                while self._store is not None:
                    last = self._take(reading, last)
            except RuntimeError:
                self._store = None
            except OSError:  # nobody listens any more
                os._exit(0)

    def _mend(self, store: TCPStore) -> None:
        """Begin to count anew where somebody else has written: to add to that breaks a connection.

        Newer versions of torch tell everybody who asks what keys there are.
        """
        for counter in (self._mine, self._theirs):
            if store.check([counter]) and not store.get(counter).isdigit():
                store.delete_key(counter)

    def _take(self, store: TCPStore, last: int) -> int:
        key = f"{self._theirs}/{last + 1}"
        message = _fetched(store, key, self._wait)
        taken = 0 if message is not None and not self._first else store.add(self._theirs, 0)
        if message is None:
            if taken <= last + 1:
                if not self._first:
                    self._wait = min(2 * self._wait, _LONGEST_WAIT)
                return min(last, taken)  # less, where it was begun to count anew
            # Its number was taken, and so was the next: it is on the way, or its sender is gone.
            if (message := _fetched(store, key, _WAIT)) is None:
                return last + 1
        more = [f"{self._theirs}/{number}" for number in range(last + 2, taken + 1)][:_AT_ONCE]
        while more and not store.check(more):
            del more[len(more) // 2 :]
        for each in (message, *(store.multi_get(more) if more else ())):
            if len(each) <= MOST:
                write(sys.stdout.buffer, each)
        if self._first:
            for each in (key, *more):
                store.delete_key(each)
        return last + 1 + len(more)

    def _connected(self) -> TCPStore | None:
        """A connection to the first doctor's store, which is set up if this is the first."""
        if self._first and self._hosted is None:
            self._set_up()
        for port in [self._port] if self._first else self._ports:
            if time.monotonic() < self._mute_until.get(port, 0.0):
                continue
            # torch would wait for ever for whoever takes the connection and says nothing.
            found = queue.SimpleQueue["TCPStore | None"]()
            args = (port, found)
            threading.Thread(target=self._try, args=args, daemon=True).start()
            try:
                store = found.get(timeout=_SLOW.total_seconds())
            except queue.Empty:
                self._mute_until[port] = time.monotonic() + _MUTE
                continue
            if store is not None:
                self._port = port
                return store
        return None

    def _try(self, port: int, found: queue.SimpleQueue[TCPStore | None]) -> None:
        """Put in a connection to the store at this port, if it is the first doctor's."""
        try:
            # torch would try for long where nobody listens.
            socket.create_connection((self._host, port), timeout=_KNOCK).close()
            store = self._client(port)
            is_right = store.check(["hello"]) and store.get("hello").decode() == self._greeting
            found.put(store if is_right else None)
        except (OSError, RuntimeError, ValueError):
            found.put(None)

    def _set_up(self) -> None:
        from torch._C._distributed_c10d import TCPStore

        for port in self._ports:
            if (listening := _listen(self._host, port)) is not None:
                self._port = port
                self._hosted = TCPStore(
                    self._host,
                    port,
                    is_master=True,
                    timeout=_SLOW,
                    wait_for_workers=False,
                    master_listen_fd=listening.detach(),
                )
                self._hosted.set("hello", self._greeting)
                return

    def _client(self, port: int) -> TCPStore:
        from torch._C._distributed_c10d import TCPStore

        return TCPStore(self._host, port, is_master=False, timeout=_SLOW, wait_for_workers=False)


def _fetched(store: TCPStore, key: str, seconds: float) -> bytes | None:
    """A message, if it comes in that time. Raises DistNetworkError."""
    from torch.distributed import DistStoreError

    store.set_timeout(timedelta(seconds=seconds))
    try:
        return store.get(key)
    except DistStoreError:
        return None


def _listen(host: str, port: int) -> socket.socket | None:
    """A socket on the interface that the job uses, or on all where its name is of no help."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        name = str(address[0])
        if name.startswith("127.") or name == "::1":  # as the first host calls itself
            family, name = socket.AF_INET, ""
        return socket.create_server((name, port), family=family, backlog=4096)
    except OSError:
        return None


def main() -> None:
    """Carry until stdin ends."""
    if (order := read(sys.stdin.buffer)) is None:
        return
    courier = _Courier(**json.loads(order))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # two for each doctor
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    enough = _MEMORY if most == resource.RLIM_INFINITY else min(_MEMORY, most)
    resource.setrlimit(resource.RLIMIT_DATA, (enough, most))  # strangers can fill a store
    threading.Thread(target=courier.carry_in, daemon=True).start()
    courier.carry_out()
    os._exit(0)  # the other thread may be waiting in torch


if __name__ == "__main__":
    main()
