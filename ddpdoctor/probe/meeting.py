"""Where ranks meet, and learn who of them is gone: a store that outlasts the group's failure."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import torch.distributed as dist
from torch._C._distributed_c10d import TCPStore

from ddpdoctor.environment.redaction import first_line
from ddpdoctor.evidence import named

_SPARE = 3.0
"""Seconds beyond the patience: what a rank says is on its way for a while, too."""
_LOOK, _LISTEN = 0.05, 0.5
_ANSWER = 5e-5
"""Seconds that the store may take to answer one rank."""


class PeerLost(Exception):
    """Another rank is gone; the message and `ranks` say which, as far as this one can know."""

    def __init__(self, message: str, ranks: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.ranks = ranks


class Meeting:
    """The store at MASTER_ADDR and MASTER_PORT, where each rank says that it came, or why it went.

    torch's own rendezvous says how many ranks came, and not which.
    """

    def __init__(self, rank: int, size: int, patience: float) -> None:
        self._rank, self._size, self._patience = rank, size, patience
        # Else torchrun's agent does.
        self._hosted_by_rank_0 = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
        self.store = self._open(hosts=rank == 0 and self._hosted_by_rank_0)

    def _open(self, hosts: bool) -> TCPStore:
        """Raises PeerLost where rank 0 does not host it, and RuntimeError where this one cannot."""
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        try:
            return TCPStore(
                address,
                port,
                self._size,
                is_master=hosts,
                timeout=timedelta(seconds=self._patience),
                wait_for_workers=False,
                multi_tenant=self._hosted_by_rank_0,
                use_libuv=os.environ.get("USE_LIBUV", "1") == "1",
            )
        except RuntimeError as error:
            if hosts or not self._hosted_by_rank_0:
                raise
            raise PeerLost(
                f"rank {self._rank} did not reach rank 0 at {address}:{port}: {first_line(error)}",
                (0,) if _resolves(address) else (),
            ) from error

    def gather(self) -> None:
        """Wait until all ranks are here. Raises PeerLost, which names those that did not come."""
        try:
            self.store.set(f"ddpdoctor/came/{self._rank}", "")
            if self.store.add("ddpdoctor/here", 1) == self._size:
                self.store.set("ddpdoctor/all", "")
            deadline = time.monotonic() + self._patience
            while not self._comes("ddpdoctor/all"):
                if self.store.check(["ddpdoctor/late"]) or time.monotonic() > deadline:
                    self.store.set("ddpdoctor/late", "")  # no rank waits longer than another
                    missing = self._silent("came")
                    self._part(missing)
                    raise PeerLost(
                        f"rank {self._rank} waited for {named(missing)}, which did not come",
                        tuple(missing),
                    )
        except RuntimeError as error:
            raise self._without_store("joining", error) from error

    @contextmanager
    def answering(self, doing: Callable[[], str]) -> Iterator[None]:
        """Have this rank say that it lives when another one asks, whatever it is busy with then.

        A rank that waits for others within torch can say nothing itself. It is asked over a
        connection of its own: the group's is in use meanwhile.
        """
        over, store = threading.Event(), self._open(hosts=False)

        def listen() -> None:
            with suppress(RuntimeError):  # the store is gone, and nobody asks any more
                while not over.wait(max(_LISTEN, self._size * _ANSWER * 10)):
                    if store.check(["ddpdoctor/asks"]):
                        store.set(f"ddpdoctor/lives/{self._rank}", doing())
                        return

        listener = threading.Thread(target=listen, name="ddpdoctor-probe-listener", daemon=True)
        listener.start()
        try:
            yield
        finally:
            over.set()
            listener.join(self._patience)

    def ask(self, doing: str, error: str, joined: bool) -> PeerLost:
        """Who is gone: each rank that lost a peer says so in the store, and the first one asks.

        A rank that waits for this one, and not for the one that is gone, learns of it by the end of
        this one's connections; while it joins it has none, and learns of it as its time is over.
        """
        try:
            order = self.store.add("ddpdoctor/failed", 1)
            self.store.set(f"ddpdoctor/said/{self._rank}", json.dumps([order, doing, error]))
            self.store.set(f"ddpdoctor/lives/{self._rank}", doing)
            self.store.set("ddpdoctor/asks", "")
            if order == self._size:
                self.store.set("ddpdoctor/all said", "")
            if joined and dist.get_backend() == "gloo":  # NCCL's watchdog tells each rank itself
                with suppress(RuntimeError, ValueError):  # the group has failed already
                    dist.destroy_process_group()
            lost = self._judged(doing, error, joined)
        except (RuntimeError, ValueError) as gone:
            return self._without_store(doing, gone)
        return lost

    def _judged(self, doing: str, error: str, joined: bool) -> PeerLost:
        if self._all_said(self._patience):
            return self._first_to_fail()
        if silent := self._silent("lives"):
            self._part(silent)
            lost = f"rank {self._rank} lost a peer while {doing}: {named(silent)} said nothing more"
            return PeerLost(f"{lost} ({error})", tuple(silent))
        # All live. One that joins late, and then waits its time out, is up to that much later.
        if self._all_said(0.0 if joined else self._patience):
            return self._first_to_fail()
        stuck = self._silent("said")
        what = self.store.get(f"ddpdoctor/lives/{stuck[0]}").decode()
        self._part(stuck)
        lost = f"rank {self._rank} lost a peer while {doing}: {named(stuck)} did not go on"
        return PeerLost(f"{lost} while {what} ({error})", tuple(stuck))

    def _all_said(self, seconds: float) -> bool:
        """Whether all have said why they failed, within that time and the spare."""
        deadline = time.monotonic() + seconds + _SPARE
        while not self._comes("ddpdoctor/all said"):
            if time.monotonic() > deadline:
                return False
        return True

    def _first_to_fail(self) -> PeerLost:
        words = self.store.multi_get(self._keys("said"))
        self._part([])
        (_, doing, error), first = min((json.loads(one), rank) for rank, one in enumerate(words))
        return PeerLost(f"rank {first} failed first, while {doing}: {error}", (first,))

    def _without_store(self, doing: str, error: Exception) -> PeerLost:
        host = "rank 0" if self._hosted_by_rank_0 else "torchrun's agent"
        return PeerLost(
            f"rank {self._rank} lost a peer while {doing}: the store is gone, and with it {host}, "
            f"which hosts it ({first_line(error)})",
            (0,) if self._hosted_by_rank_0 else (),
        )

    def _part(self, lost: list[int]) -> None:
        """Let rank 0 stay, whose process hosts the store, until all that live have asked it."""
        self.store.set(f"ddpdoctor/asked/{self._rank}", "")
        if self._rank == 0 and self._hosted_by_rank_0:
            asking = [key for rank, key in enumerate(self._keys("asked")) if rank not in lost]
            with suppress(RuntimeError):
                self.store.wait(asking, timedelta(seconds=2 * (self._patience + _SPARE)))

    def _comes(self, key: str) -> bool:
        """Whether a key is there, or in a moment: the more ranks ask, the more rarely each does."""
        if self.store.check([key]):
            return True
        time.sleep(max(_LOOK, self._size * _ANSWER))
        return False

    def _silent(self, what: str) -> list[int]:
        return [rank for rank, key in enumerate(self._keys(what)) if not self.store.check([key])]

    def _keys(self, what: str) -> list[str]:
        return [f"ddpdoctor/{what}/{rank}" for rank in range(self._size)]


def _resolves(address: str) -> bool:
    try:
        return bool(socket.getaddrinfo(address, None))
    except OSError:
        return False
