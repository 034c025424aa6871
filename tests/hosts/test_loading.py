"""What a job on one host has to pay for the jobs on several: nothing, not even an import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import ENDLESS
from tests.postmortem.test_hosts import deadlock
from tests.postmortem.test_run_directory import write

FOLLOW = """
import sys
from pathlib import Path
from ddpdoctor.run import cli, session, status, teller
from ddpdoctor.run.worlds import Worlds

worlds = Worlds(Path(sys.argv[1]), alone=sys.argv[2] == "off")
worlds.poll()
(world,) = worlds.all
assert any(rank.groups for rank in world.evidence.ranks)
print(*sorted(name for name in sys.modules if name.startswith("ddpdoctor.hosts")))
print(*world.not_seen(), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("here", "hosts", "loads"),
    [((0, 1), "auto", False), ((0,), "off", False), ((0,), "auto", True)],
)
def test_only_where_ranks_run_elsewhere_and_may_be_met_is_anything_of_it_loaded(
    tmp_path: Path, here: tuple[int, ...], hosts: str, loads: bool
) -> None:
    logs = {rank: text for rank, text in deadlock().items() if rank in here}
    boot = "from ddpdoctor.evidence import boot; print(boot())"
    mine = subprocess.run([sys.executable, "-c", boot], capture_output=True, text=True, check=True)
    logs = {
        r: t.replace('"boot": "b"', f'"boot": "{mine.stdout.strip()}"') for r, t in logs.items()
    }
    command = [sys.executable, "-c", FOLLOW, str(write(tmp_path / "run", logs)), hosts]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=ENDLESS)
    assert ("ddpdoctor.hosts.company" in done.stdout.split()) == loads
    assert bool(done.stdout.strip()) == loads
    if hosts == "off":
        assert "rank 1 of 2 wrote nothing here (each host of a job" in done.stderr


def test_a_rank_that_was_started_here_and_wrote_nothing_is_looked_for_on_no_other_host(
    tmp_path: Path,
) -> None:
    boot = "from ddpdoctor.evidence import boot; print(boot())"
    mine = subprocess.run([sys.executable, "-c", boot], capture_output=True, text=True, check=True)
    text = deadlock()[0].replace('"boot": "b"', f'"boot": "{mine.stdout.strip()}"')
    start, *rest = text.splitlines()
    by_torchrun = json.dumps(json.loads(start) | {"local_world_size": 2})
    told = "\n".join((by_torchrun, *rest, ""))
    command = [sys.executable, "-c", FOLLOW, str(write(tmp_path / "run", {0: told})), "off"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=ENDLESS)
    assert "rank 1 of 2 wrote nothing before the job ended" in done.stderr
