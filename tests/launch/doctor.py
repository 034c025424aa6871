"""A doctor to be ended from outside: `python -m tests.launch.doctor FOLDER`."""

import os
import sys
import time
from pathlib import Path

from ddpdoctor.launch import ForkServer, Job
from tests.launch.helpers import BODIES


def fork_a_bystander() -> None:
    """A process that has copies of this one's sockets, and outlives what ends its group."""
    its_own, ours = os.pipe()
    if os.fork() == 0:
        os.setsid()
        os.write(ours, b"out of the group")
        time.sleep(600)
        os._exit(0)
    os.read(its_own, 1)
    os.close(its_own)
    os.close(ours)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    with ForkServer() as server:
        kwargs = {"folder": str(folder), "then": "hang"}
        job = Job(f"{BODIES}:leave_things_behind", 2, server.fresh_run_dir(), kwargs)
        with server.launch(job) as world:
            while not all((folder / f"ready-{rank}").exists() for rank in range(2)):
                assert not world.ended, world.results
                time.sleep(0.01)
            fork_a_bystander()
            print("ready", flush=True)
            world.wait(120)
