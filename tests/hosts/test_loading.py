"""What a job on one host has to pay for the jobs on several: nothing, not even an import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.postmortem.test_hosts import deadlock
from tests.postmortem.test_run_directory import write

FOLLOW = """
import sys
from pathlib import Path
from ddpdoctor.run import cli, session, status, teller
from ddpdoctor.run.worlds import Worlds

worlds = Worlds(Path(sys.argv[1]))
worlds.poll()
(world,) = worlds.all
assert any(rank.groups for rank in world.evidence.ranks)
print(*sorted(name for name in sys.modules if name.startswith("ddpdoctor.hosts")))
"""


@pytest.mark.parametrize(("here", "loads"), [((0, 1), False), ((0,), True)])
def test_only_where_ranks_run_elsewhere_is_anything_of_it_loaded(
    tmp_path: Path, here: tuple[int, ...], loads: bool
) -> None:
    logs = {rank: text for rank, text in deadlock().items() if rank in here}
    boot = "from ddpdoctor.evidence import boot; print(boot())"
    mine = subprocess.run([sys.executable, "-c", boot], capture_output=True, text=True, check=True)
    logs = {
        r: t.replace('"boot": "b"', f'"boot": "{mine.stdout.strip()}"') for r, t in logs.items()
    }
    command = [sys.executable, "-c", FOLLOW, str(write(tmp_path / "run", logs))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert ("ddpdoctor.hosts.company" in done.stdout.split()) == loads
    assert bool(done.stdout.strip()) == loads
