"""Lives inside a rank and writes down what happened, for whoever reads the run directory.

It imports `evidence` and nothing else of the package. It raises nothing into the job, prints
nothing into it and adds no collective. Everything it learns goes through one `Log`, one line an
event, so that what was written before a SIGKILL is readable.

A process listens from the moment it has imported torch, and begins to write when it turns out to be
a rank: when it joins a process group, or ends without having done so.

`start` is for scripts that are not run under the doctor; the verdict is then asked for:

    import ddpdoctor

    ddpdoctor.watch.start()  # in each rank; then: ddpdoctor diagnose reports/run-...
"""

from __future__ import annotations

import os


def start(run_dir: str | os.PathLike[str] | None = None) -> None:
    """Begin to watch this process, if it is not watched yet; see `starting.start`."""
    from ddpdoctor.watch import starting

    starting.start(run_dir)
