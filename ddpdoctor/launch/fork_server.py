"""The doctor's handle on the server process."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from ddpdoctor.launch import capacity
from ddpdoctor.launch.channel import Channel
from ddpdoctor.launch.job import Job, LaunchError, NoRoom
from ddpdoctor.launch.processes import wake_with_parent
from ddpdoctor.launch.world import WorkerGroup

_logger = logging.getLogger(__name__)

# Read once, when a library is loaded: a pool of two OpenMP threads does not survive a fork.
_ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_SCARCE = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_BIRTH = 3.0
"""Seconds after which ranks have taken what they need, and it is missing from what is left."""
_PATIENCE = 20.0


class _Killed(LaunchError):
    """The server was killed while it started; another one may live."""


class ForkServer:
    """Launches worlds, each in about a tenth of a second once torch has been imported.

    Starts its process at the first launch, or at `start`. Worlds may run at the same time and be
    launched from several threads. Leaving its `with` block ends the worlds that still run.
    """

    def __init__(self, preload: Sequence[str] = (), *, force: bool = False) -> None:
        """`preload` names further modules to be imported once.

        With `force` ranks are launched whether or not this machine seems to have what they need.
        Raises LaunchError off Linux.
        """
        if sys.platform != "linux":
            raise LaunchError(f"ranks can be launched on Linux alone so far, not on {sys.platform}")
        self.cold: str | None = None
        """Why ranks are fresh interpreters, 5 s each, and not forks; "" if they are forks."""
        self._preload = tuple(preload)
        self._force = force
        self._folder: Path | None = None
        self._log = os.memfd_create("fork-server.log")  # which leaves nothing behind
        fcntl.fcntl(self._log, fcntl.F_SETFL, os.O_APPEND)
        weakref.finalize(self, os.close, self._log)
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._worlds: weakref.WeakSet[WorkerGroup] = weakref.WeakSet()
        self._runs = 0
        self._lock = threading.RLock()

    def start(self) -> None:
        """Start the server process, without waiting until it is ready."""
        with self._lock:
            self._start()

    def fresh_run_dir(self) -> Path:
        """A new private folder, which goes when the server does, whatever becomes of this process.

        Raises LaunchError.
        """
        with self._lock:
            self._hear_until(lambda: self._folder is not None)
            assert self._folder is not None
            self._runs += 1
            folder = self._folder / f"run-{self._runs}"
            try:
                folder.mkdir()
            except OSError as error:
                # It may have gone with the server, which says why it has ended.
                self._hear_until(lambda: self.cold is not None)
                raise LaunchError(f"there is no room for temporary files: {error}") from error
            return folder

    def launch(self, job: Job) -> WorkerGroup:
        """Have the ranks of a job started; does not wait until they are.

        With more than a few ranks the rest are started while the world is waited for or polled.
        Raises NoRoom if this machine has not got what they need, and LaunchError if torch, the
        target's file or the run directory is missing, or if the run directory was used before.
        """
        job = job.resolved()
        request = job.to_json()
        self.judge(job.processes, self._cost(job))
        try:
            _prepare(job)
        except LaunchError:
            with self._lock:
                if self._process is not None:  # the folder may have gone with it: it says why
                    self._hear_until(lambda: self.cold is not None)
            raise
        try:
            world = self._launch(job, request)
        except ConnectionError:  # the server was killed; the next one may live
            try:
                world = self._launch(job, request)
            except ConnectionError as error:
                raise LaunchError(f"{error}: {self._last_words()}") from error
        with self._lock:
            self._worlds.add(world)
        return world

    def close(self) -> None:
        """End the worlds that still run, then the server."""
        with self._lock:
            for world in list(self._worlds):
                world.kill()
            self._stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def judge(self, ranks: int, each: capacity.Cost = capacity.FORKED) -> None:
        """Raise NoRoom, which says how many would fit, unless so many ranks fit here now."""
        if self._force:
            return
        besides = capacity.Cost() if self._process is not None else capacity.SERVER
        with self._lock:
            worlds = list(self._worlds)
        for world in worlds:
            if not world.ended and time.monotonic() - world.began < _BIRTH:
                # It has not taken yet what it was found to have room for.
                besides += self._cost(world.job) * world.job.processes
        capacity.judge(ranks, each, besides)

    def _cost(self, job: Job) -> capacity.Cost:
        return capacity.FRESH if self.cold or job.fresh else capacity.FORKED

    def _launch(self, job: Job, request: str) -> WorkerGroup:
        ours, theirs = socket.socketpair()
        channel = Channel(ours)
        with self._lock, theirs:
            self._hear_until(lambda: self.cold is not None)
            if self.cold:
                self.judge(job.processes, self._cost(job))
            socket.send_fds(self._connected().connection, [b"w"], [theirs.fileno()])
        channel.send_line(request)
        try:
            return WorkerGroup(job, channel)
        except BaseException:
            channel.close()
            raise

    def _start(self) -> None:
        if self._process is not None and self._channel is not None:
            # Its socket tells sooner than its status, which a dying process has not got yet.
            if not self._channel.is_deserted():
                return
            killed = self._process
            self._stop()
            _logger.warning(
                "the fork server (process %d) ended with status %d; starting another",
                killed.pid,
                killed.returncode,
            )
        ours, theirs = socket.socketpair()
        arguments = [str(theirs.fileno()), str(self._folder or ""), *self._preload]
        # -P and an explicit path: find what this process finds, and not what lies in the folder
        # it happens to be in.
        path = os.pathsep.join(entry for entry in sys.path if entry)
        os.ftruncate(self._log, 0)
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "ddpdoctor.launch.server", *arguments],
                    env={**os.environ, **dict.fromkeys(_ONE_THREAD, "1"), "PYTHONPATH": path},
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=self._log,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,  # else it would get the terminal's Ctrl-C
                    # As soon as it is born: it may be stopped before it can say so itself. But not
                    # where another thread may hold a lock as this one forks.
                    preexec_fn=wake_with_parent if _is_alone() else None,
                )
            except OSError as error:
                raise NoRoom(f"the fork server cannot be started: {error.strerror}") from error
        self._channel = Channel(ours)
        self.cold = None

    def _connected(self) -> Channel:
        assert self._channel is not None
        return self._channel

    def _hear_until(self, is_told: Callable[[], bool]) -> None:
        """Have a server, a second one if the first is killed as it starts, and hear so much of it.

        Raises LaunchError.
        """
        self._start()
        with contextlib.suppress(_Killed):
            while not is_told():
                self._hear()
            return
        self._start()
        while not is_told():
            self._hear()

    def _hear(self) -> None:
        """Take in what the server says next while it is not ready. Raises LaunchError."""
        channel = self._connected()
        for line in channel.receive(timeout=None):
            match json.loads(line):
                case {"folder": folder}:
                    self._folder = Path(folder)
                case {"cold": reason}:
                    self.cold = reason
                    if reason:
                        _logger.warning("launching fresh interpreters instead of forks: %s", reason)
                case {"error": reason}:
                    self._stop()
                    raise LaunchError(reason)
        if channel.ended and self.cold is None:
            process = self._process
            self._stop()
            if process is not None and process.returncode < 0:
                name = signal.Signals(-process.returncode).name
                raise _Killed(
                    f"the fork server was ended by {name} before it was ready; if it is so again, "
                    "`ddpdoctor env` tries whether torch can be imported"
                )
            raise LaunchError(f"the fork server did not start: {self._last_words()}")

    def _stop(self) -> None:
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            try:
                self._process.send_signal(signal.SIGCONT)  # it may have been stopped
                self._process.wait(timeout=_PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._channel = self._process = None

    def _last_words(self) -> str:
        said = os.pread(self._log, 1 << 20, 0).decode(errors="replace")
        lines = said.strip().splitlines()
        return lines[-1] if lines else "it said nothing"


def _is_alone() -> bool:
    """Whether this process has one thread."""
    return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208


def _prepare(job: Job) -> None:
    file = job.target.rpartition(":")[0]
    if file.endswith(".py") and not (job.cwd / file).is_file():
        raise LaunchError(f"the target's file {file} does not exist")
    try:
        for rank in range(job.nproc):
            for kind in ("stdout", "stderr"):
                job.rank_file(rank, kind).touch(0o600, exist_ok=False)
    except FileExistsError:
        raise LaunchError(f"the run directory {job.run_dir} was used by another launch") from None
    except OSError as error:
        refusal = NoRoom if error.errno in _SCARCE else LaunchError
        raise refusal(f"cannot write to the run directory: {error}") from error
