"""A part of benchmarks/fuzz.py, the same each time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_damaged_file_raises_an_exception_or_takes_long() -> None:
    # In processes of its own, whose memory is limited.
    command = [sys.executable, "-m", "benchmarks.fuzz", "--inputs", "60", "--jobs", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 of 60 inputs went wrong" in done.stdout
