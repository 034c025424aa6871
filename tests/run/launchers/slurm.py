"""A cluster of this machine alone, for srun: all of it lies in a folder, and is stopped."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.patience import ENDLESS
from tests.ports import free_port

_CONFIGURATION = """
ClusterName=ddpdoctor
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
SlurmctldPort={controller}
SlurmdPort={daemon}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:8
"""


def is_here() -> bool:
    """Whether srun can be tried: it runs as root, as its daemons do."""
    return os.getuid() == 0 and all(map(shutil.which, ("srun", "slurmctld", "slurmd")))


@contextmanager
def cluster(folder: Path) -> Iterator[dict[str, str]]:
    """Starts it, and gives the environment in which srun finds it."""
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    controller, daemon = free_port(), free_port()
    configuration = folder / "slurm.conf"
    host = socket.gethostname().partition(".")[0]
    configuration.write_text(
        _CONFIGURATION.format(host=host, folder=folder, controller=controller, daemon=daemon)
    )
    ours = {"SLURM_CONF": str(configuration)}
    daemons = [
        subprocess.Popen(
            [name, "-D"],
            env={**os.environ, **ours},
            stdout=subprocess.DEVNULL,
            stderr=(folder / f"{name}.log").open("wb"),
        )
        for name in ("slurmctld", "slurmd")
    ]
    try:
        _wait_until_idle(ours)
        yield ours
    finally:
        for each in reversed(daemons):
            each.terminate()
        for each in daemons:
            try:
                each.wait(20)
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait()


def _wait_until_idle(ours: dict[str, str]) -> None:
    deadline = time.monotonic() + ENDLESS
    while time.monotonic() < deadline:
        state = subprocess.run(
            ["sinfo", "--noheader", "--format=%T"],
            env={**os.environ, **ours},
            capture_output=True,
            text=True,
            check=False,
        )
        if "idle" in state.stdout:
            return
        time.sleep(0.2)
    raise TimeoutError("the cluster of this machine did not start")
