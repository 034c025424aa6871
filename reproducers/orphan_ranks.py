"""DDP605 orphan-ranks: the launcher is killed, and its ranks live on with their port and memory.

torchrun --nproc-per-node=4 reproducers/orphan_ranks.py broken
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from ddpdoctor.reproducer import broken, documented, fix, main, measured, shared_folder

RANKS, MEGABYTES = 2, 16
STARTED = "started"
PATIENCE = 10.0
"""Seconds: how long to wait for a process to start or to end. An orphan ends itself after them."""


def be_a_rank(rank: int, folder: Path) -> None:
    """Hold a port and memory for a while, as a rank does; without torch, to start quickly."""
    memory = bytearray(MEGABYTES * 2**20)
    with socket.socket() as store:
        store.bind(("127.0.0.1", 0))
        store.listen()
        told = folder / f"{rank}.tmp"
        told.write_text(f"{os.getpid()} {store.getsockname()[1]}")
        told.rename(folder / f"{rank}.rank")
        time.sleep(2 * PATIENCE)
    del memory


def die_with(launcher: int) -> None:
    """Have the kernel kill this process when its parent dies."""
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    if os.getppid() != launcher:  # it died before we asked
        os._exit(1)


def command(folder: Path) -> list[str]:
    """Return the command that starts a rank."""
    return [sys.executable, __file__, "rank", str(folder)]


def launch_commands(folder: Path) -> None:
    """Start each rank as a command, and wait for them."""
    ranks = []
    for rank in range(RANKS):
        env = {**os.environ, "RANK": str(rank)}
        ranks.append(subprocess.Popen(command(folder), env=env))  # <-- DDP605
    (folder / STARTED).touch()
    for each in ranks:
        each.wait()


def launch_bound(folder: Path) -> None:
    """The same with ranks that ask to die with their launcher."""
    launcher, ranks = os.getpid(), []
    for rank in range(RANKS):
        env = {**os.environ, "RANK": str(rank)}
        bind = partial(die_with, launcher)
        ranks.append(subprocess.Popen(command(folder), env=env, preexec_fn=bind))
    (folder / STARTED).touch()
    for each in ranks:
        each.wait()


def launch_daemons(folder: Path) -> None:
    """Start each rank as a daemonic process of multiprocessing, and wait for them."""
    fork = multiprocessing.get_context("fork")
    ranks = [fork.Process(target=be_a_rank, args=(r, folder), daemon=True) for r in range(RANKS)]
    for each in ranks:
        each.start()
    (folder / STARTED).touch()
    for each in ranks:
        each.join()


@contextmanager
def launcher(
    way: str, *, own_group: bool = False
) -> Iterator[tuple[subprocess.Popen[bytes], dict[int, int]]]:
    """Start a launcher: its process, and the ports of its ranks. All of them end with the block."""
    folder = shared_folder() / way
    folder.mkdir(exist_ok=True)
    own = [sys.executable, __file__, way, str(folder)]
    process = subprocess.Popen(own, start_new_session=own_group)
    try:
        until(lambda: len(ports_in(folder)) == RANKS, "the ranks did not start")
        # A rank may be there before its launcher knows of it.
        until((folder / STARTED).exists, "the launcher does not wait for its ranks")
        yield process, ports_in(folder)
    finally:
        process.kill()
        process.wait()
        for pid in filter(is_alive, ports_in(folder)):
            os.kill(pid, signal.SIGKILL)


def ports_in(folder: Path) -> dict[int, int]:
    """Return the ports of the ranks that have started, by process."""
    said = (path.read_text().split() for path in folder.glob("*.rank"))
    return {int(pid): int(port) for pid, port in said}


def until(holds: Callable[[], bool], otherwise: str) -> None:
    """Wait until this holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether a process is there, and not only to be reaped."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


def check(process: subprocess.Popen[bytes], ports: dict[int, int]) -> None:
    """Assert that no rank outlives the launcher, and that ports are free for the next job."""
    process.wait(PATIENCE)
    deadline = time.monotonic() + 1
    while any(map(is_alive, ports)) and time.monotonic() < deadline:
        time.sleep(0.01)
    left = [pid for pid in ports if is_alive(pid)]
    held = 0
    for pid in left:
        held += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    taken = [port for port in ports.values() if is_taken(port)]
    measured(f"{len(left)} ranks left, with {len(taken)} ports and {held / 2**20:.0f} MB")
    assert not left, f"{len(left)} ranks outlive their launcher and hold {len(taken)} ports"
    assert not taken, f"{len(taken)} ports are still taken"


def is_taken(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return tried.connect_ex(("127.0.0.1", port)) == 0


def is_main() -> bool:
    """Whether this rank plays the user; the others have nothing to do here."""
    return os.environ["RANK"] == "0"


@broken()
def kill_the_launcher() -> None:
    """Kill the launcher, as the kernel does when memory runs out."""
    if is_main():
        with launcher("commands") as (process, ports):
            process.send_signal(signal.SIGKILL)
            check(process, ports)


@documented(source="Oneflow-Inc/oneflow#7409, as expected there")
def daemonic_processes() -> None:
    """Start the ranks with daemon=True, then kill the launcher."""
    if is_main():
        with launcher("daemons") as (process, ports):
            process.send_signal(signal.SIGKILL)
            check(process, ports)


@documented(source="pytorch/pytorch#14394, Ctrl-C")
def daemonic_processes_interrupted() -> None:
    """Start the ranks with daemon=True, then interrupt the launcher (SIGINT)."""
    if is_main():
        with launcher("daemons") as (process, ports):
            process.send_signal(signal.SIGINT)
            check(process, ports)


@documented(source="pytorch/pytorch#14491")
def parent_death_signal() -> None:
    """Have each rank ask for a signal at its parent's death (prctl), then kill the launcher."""
    if is_main():
        with launcher("bound") as (process, ports):
            process.send_signal(signal.SIGKILL)
            check(process, ports)


@fix()
def kill_the_process_group() -> None:
    """Start the launcher in a process group of its own, and kill the group."""
    if is_main():
        with launcher("commands", own_group=True) as (process, ports):
            os.killpg(process.pid, signal.SIGKILL)
            check(process, ports)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["rank", folder]:
            be_a_rank(int(os.environ["RANK"]), Path(folder))
        case ["commands", folder]:
            launch_commands(Path(folder))
        case ["daemons", folder]:
            launch_daemons(Path(folder))
        case ["bound", folder]:
            launch_bound(Path(folder))
        case _:
            main()
