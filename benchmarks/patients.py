"""How many patients ddpdoctor diagnoses right, and how many torchrun alone does.

    python -m benchmarks.patients [--rounds 3] [--busy] [--without-doctor] [NAME...]

Every script of tests/patients is started as its author would, under `ddpdoctor run`. Right is what
has the code and a line of the bug; everything else that is said is noise. `--busy` keeps every core
busy meanwhile. `--without-doctor` runs the buggy ones bare, for 20 s at most: right is then what
prints a traceback with a line of the bug on any rank, whatever its cause may be called.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.patients.patient import Patient, patients
from tests.patients.scoring import scored, summary, told

PATIENCE = 20.0
_BURN = "while True: pass"


@contextlib.contextmanager
def busy(wanted: bool) -> Iterator[None]:
    """A process on every core that never rests."""
    cores = len(os.sched_getaffinity(0)) if wanted else 0
    burners = [subprocess.Popen([sys.executable, "-c", _BURN]) for _ in range(cores)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def bare(patient: Patient) -> bool:
    """Whether the script's own launcher, alone, shows a line of the bug in a traceback."""
    with tempfile.TemporaryDirectory(prefix="patient-") as home, tempfile.TemporaryFile() as file:
        process = subprocess.Popen(
            patient.command,
            cwd=home,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
        _kill(process.pid)
        process.wait()
        file.seek(0)
        output = file.read().decode(errors="replace")
    return any(f'{patient.script.name}", line {line},' in output for _, line in patient.marks)


def _kill(leader: int) -> None:
    """The launcher and its ranks: torchrun gives each a session of its own."""
    import psutil

    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(leader).children(recursive=True):
            child.kill()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--without-doctor", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    chosen = patients(options.names)
    with busy(options.busy):
        for number in range(1, options.rounds + 1):
            scores = []
            for score in scored(chosen, really=True):
                scores.append(score)
                print(told(score), flush=True)
            print(f"round {number}: {summary(scores)}", flush=True)
        if options.without_doctor:
            sick = [patient for patient in chosen if patient.marks]
            shown = [patient.name for patient in sick if bare(patient)]
            print(f"without a doctor, within {PATIENCE:.0f} s: {len(shown)} of {len(sick)} show it")
            print(f"  {' '.join(shown)}")


if __name__ == "__main__":
    main()
