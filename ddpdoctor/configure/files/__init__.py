"""One module per launcher: how its file reads, how it is started, how it can be tried here."""

from __future__ import annotations

from ddpdoctor.configure.files import accelerate, kubernetes, mpirun, slurm, torchrun
from ddpdoctor.configure.files.launch_file import LaunchFile, NotHere

LAUNCHERS: dict[str, LaunchFile] = {
    one.name: one
    for one in (
        accelerate.FILE,
        torchrun.FILE,
        slurm.FILE,
        kubernetes.FILE,
        mpirun.FILE,
    )
}

__all__ = ["LAUNCHERS", "LaunchFile", "NotHere"]
