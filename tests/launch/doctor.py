"""A doctor to be ended from outside: `python -m tests.launch.doctor FOLDER`."""

import os
import sys
import time
from pathlib import Path

from ddpdoctor.launch import ForkServer, Job
from tests.launch.helpers import BODIES


def fork_a_bystander() -> None:
    """A process that has copies of this one's sockets, and outlives it."""
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
        os._exit(0)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    with ForkServer() as server:
        kwargs = {"folder": str(folder), "then": "hang"}
        job = Job(f"{BODIES}:leave_things_behind", 2, server.fresh_run_dir(), kwargs)
        with server.launch(job) as world:
            while not all((folder / f"ready-{rank}").exists() for rank in range(2)):
                time.sleep(0.01)
            fork_a_bystander()
            print("ready", flush=True)
            world.wait()
