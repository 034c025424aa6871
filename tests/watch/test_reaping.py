"""How children ended is written down by whoever has started them, in whichever way."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest

from ddpdoctor.evidence import noted_deaths

PROGRAM = """
import multiprocessing, sys
from pathlib import Path
from ddpdoctor.watch import reaping

reaping.install(Path(sys.argv[2]))
child = multiprocessing.get_context(sys.argv[1]).Process(target=sys.exit, args=(7,))
child.start()
child.join()
print(child.pid)
"""


@pytest.mark.parametrize("way", multiprocessing.get_all_start_methods())
def test_a_child_that_has_ended_is_noted(way: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, way, str(tmp_path)]
    pid = int(subprocess.check_output(command, text=True))
    assert noted_deaths(tmp_path)[pid] == 7
