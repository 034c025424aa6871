"""The process that has imported torch once and is forked from: `python -m ddpdoctor.launch.server`.

It runs no parallel operation, hosts no store and has one thread, or a child could inherit a lock
that nobody will ever release.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import logging
import os
import shutil
import socket
import sys
import traceback
import weakref
from multiprocessing import util as multiprocessing_util
from multiprocessing.connection import wait
from pathlib import Path

from ddpdoctor.launch.channel import Channel
from ddpdoctor.launch.keeper import keep
from ddpdoctor.launch.processes import Children, adopt_orphans
from ddpdoctor.launch.rank import env_rendezvous_handlers
from ddpdoctor.launch.warm_up import use_huge_pages, warm_up

# torch._dynamo, because the constructor of DistributedDataParallel imports it: 1.1 s on every rank.
_PRELOAD = ("torch", "torch.distributed", "torch._dynamo", "torch.nn.parallel.distributed")
_WELCOME = ("numpy",)  # where it is installed


def main() -> None:
    """Serve the doctor at the other end of the socket until it closes it."""
    descriptor, folder, *also = sys.argv[1:]
    doctor = Channel(socket.socket(fileno=int(descriptor)))
    adopt_orphans()
    children = Children()
    try:
        _preload(also)
    except ImportError as error:
        doctor.send({"error": str(error)})
        return
    _forget_exit_hooks()
    reason = _unfit_to_fork()
    doctor.send({"cold": reason})
    gc.collect()
    gc.freeze()
    if not reason:
        with contextlib.suppress(OSError):
            use_huge_pages()
    keepers = _serve(doctor, children, warm=not reason)
    _end(keepers, children)
    shutil.rmtree(folder, ignore_errors=True)


def _preload(also: list[str]) -> None:
    for name in _PRELOAD:
        importlib.import_module(name)
    for name in (*_WELCOME, *also):
        with contextlib.suppress(Exception):  # whoever needs it will hear of it in the rank
            importlib.import_module(name)
    env_rendezvous_handlers()
    with contextlib.suppress(Exception):  # it makes ranks cheaper, and nothing needs it
        warm_up()


def _forget_exit_hooks() -> None:
    # What the imports registered must not run at the end of every rank. The standard library's own
    # hooks come back, in the order in which a fresh interpreter would have registered them.
    atexit._clear()
    weakref.finalize._registry.clear()  # type: ignore[attr-defined]
    weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]
    atexit.register(logging.shutdown)
    atexit.register(multiprocessing_util._exit_function)  # type: ignore[attr-defined]


def _unfit_to_fork() -> str:
    """Why a fork of this process would not be safe; empty if it is."""
    if (threads := len(list(Path("/proc/self/task").iterdir()))) > 1:
        return f"importing torch left {threads} threads running"
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if (opened := str(descriptor.readlink())).startswith("/dev/nvidia"):
                return f"importing torch opened {opened}"
    return ""


def _serve(doctor: Channel, children: Children, warm: bool) -> set[int]:
    """Fork a keeper for every socket the doctor sends, and return them when the doctor is gone."""
    keepers: set[int] = set()
    while True:
        ready = wait([doctor.fileno(), children.fileno()])
        if children.fileno() in ready:
            _look_after(children, keepers)
        if doctor.fileno() not in ready:
            continue
        _, descriptors, _, _ = socket.recv_fds(doctor.connection, 1, 1)
        if not descriptors:
            return keepers
        with socket.socket(fileno=descriptors[0]) as connection:
            keepers.add(_fork_keeper(connection, children, warm))


def _fork_keeper(connection: socket.socket, children: Children, warm: bool) -> int:
    if pid := os.fork():
        return pid
    status = 1
    try:
        children.disown()
        keep(Channel(connection), warm)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _look_after(children: Children, keepers: set[int]) -> None:
    for pid, status in children.reap():
        keepers.discard(pid)
        if status != 0:
            # A keeper that died has not swept its world, which is ours now.
            for stray in set(children.left()) - keepers:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(stray, 9)


def _end(keepers: set[int], children: Children) -> None:
    """Let the keepers end their worlds, each of which knows by now, then sweep what is left."""
    while keepers and wait([children.fileno()], timeout=10.0):
        keepers -= {pid for pid, _ in children.reap()}
    children.kill_all()


if __name__ == "__main__":
    main()
