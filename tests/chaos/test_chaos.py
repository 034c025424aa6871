"""A part of benchmarks/chaos.py: a trial of every few kinds, the same each time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_whatever_is_done_to_a_doctor_it_keeps_its_promises_and_leaves_nothing() -> None:
    # In a process of its own, which it forks from: it must have torch, and no second thread.
    command = [sys.executable, "-m", "benchmarks.chaos", "--trials", "3", "-j2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 of 3 trials went wrong" in done.stdout
