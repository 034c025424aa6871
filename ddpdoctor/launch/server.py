"""The process that has imported torch once and is forked from: `python -m ddpdoctor.launch.server`.

It runs no parallel operation, hosts no store and has one thread, or a child could inherit a lock
that nobody will ever release.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
import weakref
from collections.abc import Iterator
from multiprocessing import util as multiprocessing_util
from multiprocessing.connection import wait
from pathlib import Path
from typing import NoReturn

from ddpdoctor.launch.channel import Channel
from ddpdoctor.launch.keeper import keep
from ddpdoctor.launch.processes import Children, adopt_orphans, wake_with_parent
from ddpdoctor.launch.rank import env_rendezvous_handlers
from ddpdoctor.launch.warm_up import use_huge_pages, warm_up

# torch._dynamo, because the constructor of DistributedDataParallel imports it: 1.1 s on every rank.
_PRELOAD = ("torch", "torch.distributed", "torch._dynamo", "torch.nn.parallel.distributed")
_WELCOME = ("numpy",)  # where it is installed
_PATIENCE = 3.0
"""Seconds that a keeper has for ending its world, which takes it a few hundredths."""


def main() -> None:
    """Serve the doctor at the other end of the socket until it closes it."""
    descriptor, folder, *also = sys.argv[1:]
    doctor = Channel(socket.socket(fileno=int(descriptor)))
    adopt_orphans()
    wake_with_parent()
    children = Children()
    try:
        home = Path(folder or tempfile.gettempdir()) / ("" if folder else _name())
    except OSError as error:
        doctor.send({"error": f"there is no folder for temporary files: {error}"})
        return
    keepers: set[int] = set()
    try:
        _get_ready_and_serve(doctor, children, home, also, keepers)
    except ConnectionError:
        pass  # it went while it was being told something
    except BaseException:
        traceback.print_exc()
    _end(keepers, children, home)


def _get_ready_and_serve(
    doctor: Channel, children: Children, home: Path, also: list[str], keepers: set[int]
) -> None:
    with _ending_with(doctor, children, home):
        if complaint := _prepare(doctor, home, also):
            doctor.send({"error": complaint})
            return
        _forget_exit_hooks()
        reason = _unfit_to_fork()
        doctor.send({"cold": reason})
        gc.collect()
        gc.freeze()
        if not reason:
            with contextlib.suppress(OSError):
                use_huge_pages()
    _serve(doctor, children, keepers, warm=not reason)


def _name() -> str:
    return f"ddpdoctor-{secrets.token_hex(4)}"


def _prepare(doctor: Channel, home: Path, also: list[str]) -> str:
    """Make the folder and import everything; why that cannot be, or ""."""
    try:
        home.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        return f"there is no room for temporary files: {error}"
    doctor.send({"folder": str(home)})
    try:
        _preload(also)
    except ImportError as error:
        return f"torch cannot be used by {sys.executable}: {error}; pip install 'ddpdoctor[torch]'"
    except Exception as error:
        said = next(iter(str(error).strip().splitlines()), "")
        return (
            f"torch cannot be imported by {sys.executable}: {type(error).__name__}: {said}; "
            "`ddpdoctor env` finds the variable that is in the way, if one is"
        )
    return ""


@contextlib.contextmanager
def _ending_with(doctor: Channel, children: Children, home: Path) -> Iterator[None]:
    """Within, be gone as soon as the doctor is, whatever is being done.

    The kernel says so by a signal, for importing torch takes seconds, and nobody looks at the
    socket meanwhile.
    """

    def look(*_: object) -> None:
        if doctor.is_deserted():
            _end(set(), children, home)

    signal.signal(signal.SIGIO, look)
    flags = fcntl.fcntl(doctor.fileno(), fcntl.F_GETFL)
    fcntl.fcntl(doctor.fileno(), fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(doctor.fileno(), fcntl.F_SETFL, flags | os.O_ASYNC)
    look()
    try:
        yield
    finally:
        fcntl.fcntl(doctor.fileno(), fcntl.F_SETFL, flags)
        signal.signal(signal.SIGIO, signal.SIG_DFL)


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


def _serve(doctor: Channel, children: Children, keepers: set[int], *, warm: bool) -> None:
    """Fork a keeper for every socket that the doctor sends, until it is gone.

    Raises ConnectionError if it was killed before it had heard what we said last, and OSError if
    nothing can be forked: its worlds end in any case.
    """
    while True:
        ready = wait([doctor.fileno(), children.fileno()])
        if children.fileno() in ready:
            _look_after(children, keepers)
        if doctor.fileno() not in ready:
            continue
        _, descriptors, _, _ = socket.recv_fds(doctor.connection, 1, 1)
        if not descriptors:
            return
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


def _end(keepers: set[int], children: Children, home: Path) -> NoReturn:
    """Let the keepers end their worlds, each of which knows by now, then sweep what is left."""
    for keeper in keepers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(keeper, signal.SIGCONT)
    deadline = time.monotonic() + _PATIENCE
    while keepers and (left := deadline - time.monotonic()) > 0:
        wait([children.fileno()], left)
        keepers -= {pid for pid, _ in children.reap()}
    children.kill_all()
    _remove(home, time.monotonic() + _PATIENCE)
    os._exit(0)


def _remove(home: Path, deadline: float) -> None:
    """Files may come while the folder is emptied, of ranks that the kernel has not ended yet."""
    shutil.rmtree(home, ignore_errors=True)
    while home.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
