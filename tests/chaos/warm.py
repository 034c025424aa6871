"""Programs that start without their imports: forked from this process, which has torch already.

A trial would else spend seconds on importing torch in every process that it is about to disturb.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ddpdoctor.launch import fork_server, rank, server
from ddpdoctor.run import job
from ddpdoctor.watch import arrival
from tests.ports import free_port

JOB = Path(__file__).with_name("job.py")
LAUNCHER = "launcher"


class Popen:
    """Stands in for subprocess.Popen where the doctor starts its server, or the user's command."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        close_fds: bool = True,
        pass_fds: Sequence[int] = (),
        start_new_session: bool = False,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        preexec_fn: Callable[[], None] | None = None,
    ) -> None:
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _as_after_exec(close_fds, pass_fds, (stdin, stdout, stderr))
                os.environ.clear()
                os.environ.update(env)
                if preexec_fn is not None:
                    preexec_fn()
                if start_new_session:
                    os.setsid()  # last: by this it is seen that it has begun
                end(lambda: _become(command))
            finally:
                os._exit(1)

    def poll(self) -> int | None:
        with contextlib.suppress(ChildProcessError):
            if self.returncode is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = time.monotonic() + (timeout if timeout is not None else 1e9)
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("a program", timeout or 0)
            time.sleep(0.005)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def use() -> None:
    """Be the doctor from now on, with Ctrl-C as Python has it; all that it starts starts warm."""
    stand_in = SimpleNamespace(**{**vars(subprocess), "Popen": Popen})
    job.subprocess = fork_server.subprocess = stand_in  # type: ignore[attr-defined]
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _as_after_exec(close_fds: bool, kept: Sequence[int], streams: Sequence[int | None]) -> None:
    signal.set_wakeup_fd(-1)
    faulthandler.disable()  # pytest's, which no process that it starts has
    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for descriptor, stream in enumerate(streams):
        if stream == subprocess.DEVNULL:
            os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
        elif stream is not None:
            os.dup2(stream, descriptor)
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
    for descriptor in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208
        with contextlib.suppress(OSError):
            inherited = descriptor in kept or (not close_fds and os.get_inheritable(descriptor))
            if descriptor > 2 and not inherited:
                os.close(descriptor)


def _become(command: Sequence[str]) -> int:
    if command[0] == LAUNCHER:
        return launch(int(command[1]), command[2:])
    assert "ddpdoctor.launch.server" in command, command
    sys.argv[:] = list(command[command.index("ddpdoctor.launch.server") :])
    server.main()
    return 0


def launch(number: int, arguments: Sequence[str]) -> int:
    """Ranks, in the manner of mpirun; the largest of their statuses is left in a file, too."""
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    world = {"WORLD_SIZE": str(number), **meeting}
    ranks = []
    for each in range(number):
        ranks.append(os.fork())
        if ranks[-1] == 0:
            os.environ.update(world, RANK=str(each), LOCAL_RANK=str(each))
            end(lambda: _be_rank(arguments))
    statuses = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in ranks]
    worst = max(abs(status) for status in statuses)
    Path("status").write_text(str(worst))
    return worst


def _be_rank(arguments: Sequence[str]) -> int:
    if run_dir := os.environ.get("DDPDOCTOR_RUN"):
        arrival.listen(Path(run_dir))  # what the import of torch does in a fresh interpreter
    sys.argv[:] = [str(JOB), *arguments]
    runpy.run_path(str(JOB), run_name="__main__")
    return 0


def end(main: Callable[[], int | None]) -> Any:
    """Be a program to its end, as an interpreter would be, in a process that was just forked."""
    status = 1
    try:
        threading.current_thread()
        status = main() or 0
    except SystemExit as request:
        status = rank._exit_status(request.code)
    except KeyboardInterrupt:
        status = -signal.SIGINT
    except BaseException as error:
        sys.last_value = error
        sys.excepthook(type(error), error, error.__traceback__)
    try:
        rank._exit(status)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)
