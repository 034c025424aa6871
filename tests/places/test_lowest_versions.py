"""The lowest versions that are promised of what the doctor needs: all of it works with them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

from tests.places.test_packaging import PROJECT, ROOT

EXTRAS = PROJECT["optional-dependencies"]
LOWEST = [
    each.replace(">=", "==")
    for each in (*PROJECT["dependencies"], *EXTRAS["attach"], *EXTRAS["lsp"])
]
ASKED = {
    "--help": 0,
    "lint --fail-on warning tests/lint/samples/DDP401_assert_bad.py": 1,
    "lint --fail-on warning --format html tests/lint/samples/DDP401_assert_bad.py": 1,
    "explain DDP401": 0,
    "env --fail-on never": 0,
    "check --select DDP401 --format junit": 0,
    "lint --format nonsense .": 2,
}
"""What each of these ends with."""


@pytest.mark.thorough
def test_the_lowest_versions_that_are_promised_will_do(tmp_path: Path) -> None:
    """Wheels alone: whoever installs the doctor need not have a compiler."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    command += ["--target", str(tmp_path), *LOWEST]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "(from versions: none)" in done.stderr:
        pytest.skip("there is no registry of packages")
    assert done.returncode == 0, done.stderr
    there = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    program = (
        "import sys; from importlib.metadata import version as v; print(*map(v, sys.argv[1:]))"
    )
    names, versions = zip(*(each.split("==") for each in LOWEST), strict=True)
    told = subprocess.check_output([sys.executable, "-c", program, *names], env=there, text=True)
    for given, promised in zip(told.split(), versions, strict=True):
        assert Version(given) == Version(promised)
    for asked, code in ASKED.items():
        command = [sys.executable, "-m", "ddpdoctor", *asked.split()]
        done = subprocess.run(command, cwd=ROOT, env=there, capture_output=True, check=False)
        assert (done.returncode, b"a fault of ours" in done.stderr) == (code, False), asked
    served = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/places/test_language_server.py",
    ]
    subprocess.run([sys.executable, *served], cwd=ROOT, env=there, check=True)
