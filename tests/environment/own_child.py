"""A child whose mounts, network, limits and variables are its own: facts are collected there.

They are those of the kernel as it is in that child, and are judged in it.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from quick import QUICK_TORCH

from ddpdoctor.environment.checks import findings
from ddpdoctor.environment.facts import collect

_NEW_MOUNTS, _NEW_NETWORK = 0x00020000, 0x40000000


def nothing() -> None:
    """What is done in the child beside the variables."""


def judged(
    environ: Mapping[str, str],
    prepare: Callable[[], object] = nothing,
    nproc: int | None = None,
    checkpoints: Path | None = None,
) -> list[tuple[str, str, str]]:
    """Code, severity and cause of what is found in a child; skips where it cannot be prepared."""
    reads, writes = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.close(reads)
            told: object
            try:
                prepare()
            except (OSError, subprocess.CalledProcessError) as error:
                told = f"cannot be set up here: {getattr(error, 'stderr', None) or error}"
            else:
                here = {"PATH": os.environ["PATH"], "PYTHONPATH": str(QUICK_TORCH), **environ}
                facts = collect(here, nproc=nproc, checkpoints=checkpoints)
                told = [(one.code, one.severity, one.cause) for one in findings(facts)]
            os.write(writes, json.dumps(told).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as told_by:
        text = told_by.read()
    os.waitpid(child, 0)
    told = json.loads(text)
    if isinstance(told, str):
        pytest.skip(told)
    return [(code, severity, cause) for code, severity, cause in told]


def shell(commands: str) -> Callable[[], object]:
    """In mounts and a network of this process alone."""

    def run() -> None:
        if ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS | _NEW_NETWORK):
            raise OSError(ctypes.get_errno(), "unshare")
        commands_ = f"mount --make-rprivate /; ip link set lo up; {commands}"
        subprocess.run(["sh", "-ec", commands_], check=True, capture_output=True, text=True)

    return run
