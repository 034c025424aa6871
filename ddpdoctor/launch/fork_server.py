"""The doctor's handle on the server process."""

from __future__ import annotations

import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from ddpdoctor.launch.channel import Channel
from ddpdoctor.launch.job import Job, LaunchError
from ddpdoctor.launch.world import World

_log = logging.getLogger(__name__)

# Read once, when a library is loaded: a pool of two OpenMP threads does not survive a fork.
_ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class ForkServer:
    """Launches worlds, each in about a tenth of a second once torch has been imported.

    Starts its process at the first launch, or at `start`. Worlds may run at the same time and be
    launched from several threads. Leaving its `with` block ends the worlds that still run.
    """

    def __init__(self, preload: Sequence[str] = ()) -> None:
        """`preload` names further modules to be imported once. Raises LaunchError off Linux."""
        if sys.platform != "linux":
            raise LaunchError(f"ranks can be launched on Linux alone so far, not on {sys.platform}")
        self.cold: str | None = None
        """Why ranks are fresh interpreters, 5 s each, and not forks; "" if they are forks."""
        self._preload = tuple(preload)
        self._folder = Path(tempfile.mkdtemp(prefix="ddpdoctor-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._worlds: weakref.WeakSet[World] = weakref.WeakSet()
        self._runs = 0
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the server process, without waiting until it is ready."""
        with self._lock:
            self._start()

    def fresh_run_dir(self) -> Path:
        """A new private folder, which goes when the server does."""
        with self._lock:
            self._runs += 1
            folder = self._folder / f"run-{self._runs}"
            folder.mkdir(parents=True)
            return folder

    def launch(self, job: Job) -> World:
        """Have the ranks of a job started; does not wait until they are.

        Raises LaunchError if torch, the target's file or the run directory is missing, or if the
        run directory was used before.
        """
        job = job.resolved()
        request = job.to_json()
        _prepare(job)
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
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _launch(self, job: Job, request: str) -> World:
        ours, theirs = socket.socketpair()
        channel = Channel(ours)
        with self._lock, theirs:
            self._start()
            assert self._channel is not None
            self._await_readiness(self._channel)
            socket.send_fds(self._channel.connection, [b"w"], [theirs.fileno()])
        channel.send_line(request)
        try:
            return World(job, channel)
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
            _log.warning(
                "the fork server (process %d) ended with status %d; starting another",
                killed.pid,
                killed.returncode,
            )
        self._folder.mkdir(exist_ok=True)
        ours, theirs = socket.socketpair()
        arguments = [str(theirs.fileno()), str(self._folder), *self._preload]
        # -P and an explicit path: find what this process finds, and not what lies in the folder
        # it happens to be in.
        path = os.pathsep.join(entry for entry in sys.path if entry)
        with theirs, self._log_file.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "ddpdoctor.launch.server", *arguments],
                env={**os.environ, **dict.fromkeys(_ONE_THREAD, "1"), "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # else it would get the terminal's Ctrl-C
            )
        self._channel = Channel(ours)
        self.cold = None

    def _await_readiness(self, channel: Channel) -> None:
        while self.cold is None:
            for line in channel.receive(timeout=None):
                match json.loads(line):
                    case {"cold": reason}:
                        self.cold = reason
                    case {"error": reason}:
                        self._stop()
                        raise LaunchError(
                            f"torch cannot be used by {sys.executable}: {reason}; "
                            "pip install 'ddpdoctor[torch]'"
                        )
            if channel.ended and self.cold is None:
                self._stop()
                raise LaunchError(f"the fork server did not start: {self._last_words()}")
        if self.cold:
            _log.warning("launching fresh interpreters instead of forks: %s", self.cold)

    def _stop(self) -> None:
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            try:
                self._process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._channel = self._process = None

    @property
    def _log_file(self) -> Path:
        return self._folder / "server.log"

    def _last_words(self) -> str:
        lines = self._log_file.read_text("utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


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
        raise LaunchError(f"cannot write to the run directory: {error}") from error
