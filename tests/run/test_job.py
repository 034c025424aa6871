"""Who is killed because it does nothing is at rest, and not about to end."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

from ddpdoctor.run.job import RunningCommand
from tests.patience import within

WORKS_THEN_RESTS = """
import sys, time
from pathlib import Path

while time.process_time() < 3:
    pass
Path(sys.argv[1]).touch()
time.sleep(600)
"""


def test_a_process_that_works_is_left_alone_and_one_that_rests_is_killed(tmp_path: Path) -> None:
    has_worked = tmp_path / "worked"
    job = RunningCommand([sys.executable, "-c", WORKS_THEN_RESTS, str(has_worked)], {})
    while not job.kill_at_rest({job.pid}):
        assert job.status is None
        time.sleep(0.05)
    assert has_worked.exists()
    assert within(20, lambda: job.status == -signal.SIGKILL)


def test_no_other_process_than_the_commands_is_killed(tmp_path: Path) -> None:
    job = RunningCommand([sys.executable, "-c", "import time; time.sleep(3)"], {})
    other = RunningCommand([sys.executable, "-c", "import time; time.sleep(600)"], {})
    while job.status is None:
        assert not job.kill_at_rest({other.pid})
        time.sleep(0.05)
    assert other.status is None
    other.send(signal.SIGKILL)
    assert within(20, lambda: other.status is not None)
