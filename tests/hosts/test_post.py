"""Couriers for real, on this machine: a port that is taken, strangers at the store, and the end."""

from __future__ import annotations

import contextlib
import signal
import socket
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import psutil
import pytest
from torch.distributed import TCPStore

from ddpdoctor.hosts.messages import Meeting
from ddpdoctor.hosts.post import Post, StorePost


def meeting() -> Meeting:
    found = Meeting.of("127.0.0.1:29500", 2, f"run-{time.monotonic_ns()}")
    assert found is not None
    return found


@pytest.fixture
def met() -> Iterator[tuple[Meeting, Post, Post]]:
    """Two posts, of which the first finds its first port taken by somebody who says nothing."""
    here = meeting()
    with socket.create_server(("", here.ports[0])):
        first, member = StorePost(here, first=True), StorePost(here, first=False)
        try:
            assert until(lambda: first.taken() + member.taken() != []) is None
            yield here, first, member
        finally:
            first.close()
            member.close()
    until(lambda: not any(map(is_courier, psutil.Process().children())))


def is_courier(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):  # it is a zombie, or gone
        return "ddpdoctor.hosts.courier" in process.cmdline()
    return False


def until(is_so: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def speaking(heard: list[bytes]) -> Callable[[Post, Post, bytes], bool]:
    """Says something, again and again: what is said before both are connected is lost."""

    def says(post: Post, other: Post, message: bytes) -> bool:
        post.send(message)
        time.sleep(0.1)
        heard.extend(other.taken())
        return message in heard

    return says


def test_messages_go_both_ways_whatever_strangers_do(met: tuple[Meeting, Post, Post]) -> None:
    here, first, member = met
    heard: list[bytes] = []
    says = speaking(heard)
    until(lambda: says(first, member, b"question"))
    until(lambda: says(member, first, b"answer"))

    port = here.ports[1]
    with socket.create_connection(("127.0.0.1", port)) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
        store = TCPStore("127.0.0.1", port, is_master=False, timeout=timedelta(seconds=60))
        box = f"{here.drawer}/in"
        store.set(f"{box}/{store.add(box, 1)}", "not from us")
        store.add(box, 1)  # and never sets it
        until(lambda: says(member, first, b"another answer"))
    assert b"not from us" in heard  # for the doctor to refuse: it has no seal

    first._process.send_signal(signal.SIGSTOP)  # with the store, which answers nobody meanwhile
    until(lambda: psutil.Process(first._process.pid).status() == psutil.STATUS_STOPPED)
    member.send(b"said meanwhile")
    time.sleep(3)
    assert first.taken() == []
    first._process.send_signal(signal.SIGCONT)
    until(lambda: heard.extend(first.taken()) is None and b"said meanwhile" in heard)
    assert not member.is_full


@pytest.mark.thorough
def test_who_lacks_the_token_and_writes_all_over_the_store_interrupts_and_no_more(
    met: tuple[Meeting, Post, Post],
) -> None:
    """In keys that he can guess nothing lies, but newer versions of torch tell him all keys."""
    here, first, member = met
    heard: list[bytes] = []
    says = speaking(heard)
    until(lambda: says(first, member, b"question"))
    until(lambda: says(member, first, b"answer"))
    store = TCPStore("127.0.0.1", here.ports[1], is_master=False, timeout=timedelta(seconds=60))
    for key in ("in", "out", "in/1", "out/1"):
        store.set(key, "garbage")
    assert says(member, first, b"undisturbed") or says(member, first, b"undisturbed")
    for key in store.list_keys() if hasattr(store, "list_keys") else ():
        if key.endswith(("/in", "/out")):
            store.set(key, "garbage")
    until(lambda: says(member, first, b"again"))
    until(lambda: says(first, member, b"and again"))
