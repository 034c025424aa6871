"""Records how children ended, in the process that starts ranks: nobody else knows for sure."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from multiprocessing import popen_fork, popen_forkserver
from pathlib import Path
from typing import Any

from ddpdoctor.evidence import DEATHS
from ddpdoctor.watch.harmless import harmless


def install(run_dir: Path) -> None:
    """Listen to the calls by which multiprocessing and subprocess learn of a child's end."""
    file = run_dir / DEATHS
    file.touch()  # also the sign that a process has come under watch
    for popen in (popen_fork.Popen, popen_forkserver.Popen):
        _listen(file, popen)
    handle: Any = subprocess.Popen._handle_exitstatus  # type: ignore[attr-defined]

    @functools.wraps(handle)
    def handled(child: Any, *args: Any, **kwargs: Any) -> None:
        handle(child, *args, **kwargs)
        note(file, child.pid, child.returncode)

    subprocess.Popen._handle_exitstatus = handled  # type: ignore[attr-defined]


def _listen(file: Path, popen: Any) -> None:
    poll = popen.poll

    @functools.wraps(poll)
    def polled(child: Any, *args: Any, **kwargs: Any) -> Any:
        known = child.returncode is not None
        code = poll(child, *args, **kwargs)
        if code is not None and not known:
            note(file, child.pid, code)
        return code

    popen.poll = polled


@harmless
def note(file: Path, pid: int, code: int) -> None:
    """Write down that this process has ended so, or is about to."""
    line = json.dumps({"pid": pid, "code": code}).encode() + b"\n"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)
