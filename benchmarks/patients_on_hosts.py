"""Whether the patients that hang get the verdict of one host on two hosts, and how soon.

    python -m benchmarks.patients_on_hosts [NAME...]

Needs root: network namespaces stand for the hosts. Each patient that torchrun starts and whose
failure may hang runs with half of its ranks on each, under a doctor there. Told are the findings of
the first host's doctor, as of one host's (`python -m tests.patients.scoring`), and the seconds from
the last rank's blocking to the proof. With --healthy N, N runs of correct scripts instead, over a
cable that delays packets by 50 ms and loses 2 %: nothing may be said of them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from ddpdoctor.catalog import load
from ddpdoctor.report.model import Report
from tests.network import ADDRESS, DEVICE, Network, network
from tests.patients.patient import Patient, Score, patients
from tests.patients.scoring import told

_LONGEST = 100.0
"""Seconds of a job; not all that hang are dead, and those are left alone."""
_TO_TELL = 30.0


def hanging(patient: Patient) -> bool:
    """Whether its failure may show by a hang, and half of its ranks can be on each host."""
    known = load()
    may_hang = any("hang" in known[code].symptoms for code, _ in patient.marks if code in known)
    return may_hang and patient.launch == "torchrun" and patient.nproc % 2 == 0


def run(patient: Patient, folder: Path, delay: float, loss: float) -> list[Report]:
    """The reports of both hosts, the first doctor's first; fewer if a doctor did not end."""
    mark = {"DDPDOCTOR_BENCHMARK": str(folder)}
    with network(folder, delay, loss) as hosts:
        doctors = [_start(hosts, host, patient, folder, mark) for host in (1, 2)]
        _wait(doctors, _LONGEST)
        for doctor in doctors:
            doctor.terminate()  # the job is asked to end, and the doctor tells what it has found
        _wait(doctors, _TO_TELL)
        _end(mark)
        for doctor in doctors:
            doctor.wait()
    found = [folder / f"{host}.json" for host in (1, 2)]
    reports = [Report.model_validate_json(p.read_text()) for p in found if p.exists()]
    return sorted(reports, key=lambda each: -len(each.findings))


def _start(
    hosts: Network, host: int, patient: Patient, folder: Path, mark: dict[str, str]
) -> subprocess.Popen[bytes]:
    home = folder / "home"  # on storage that both see
    home.mkdir(exist_ok=True)
    doctor = [sys.executable, "-m", "ddpdoctor", "run", "--format=json"]
    launch = ["torchrun", "--nnodes=2", f"--node-rank={host - 1}", "--master-port=29511"]
    launch += [f"--master-addr={ADDRESS.format(host=1)}", f"--nproc-per-node={patient.nproc // 2}"]
    command = [*doctor, f"--output={folder / f'{host}.json'}", "--", *launch, str(patient.script)]
    with (folder / f"{host}.err").open("wb") as errors:
        return subprocess.Popen(
            hosts.on(host, "env", "-C", str(home), *command),
            env={**os.environ, **mark, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": DEVICE},
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )


def _wait(doctors: Iterable[subprocess.Popen[bytes]], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    with contextlib.suppress(subprocess.TimeoutExpired):
        for doctor in doctors:
            doctor.wait(max(0.1, deadline - time.monotonic()))


def _end(mark: dict[str, str]) -> None:
    """End what is left of a run."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if mark.items() <= process.environ().items():
                process.kill()


def examine(chosen: Iterable[Patient], delay: float = 0.0, loss: float = 0.0) -> None:
    """Run them, a line for each, and the sums."""
    latencies, scores = [], []
    for patient in chosen:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="hosts-") as folder:
            reports = run(patient, Path(folder), delay, loss)
        findings = reports[0].findings if reports else ()
        score = Score(patient, tuple(findings), time.monotonic() - began)
        scores.append(score)
        proven = [r.proven_after for r in reports if r.proven_after is not None]
        latencies += proven[:1]
        notes = [line for report in reports for line in report.not_seen]
        print(told(score), *(f"    proven after {each:.2f} s" for each in proven[:1]), sep="\n")
        print(*(f"    {note}" for note in notes if not score.is_good), sep="\n", flush=True)
    good = sum(score.is_good for score in scores)
    print(f"{good} of {len(scores)} as on one host")
    if latencies:
        print(
            f"proven after the last rank blocked: median {statistics.median(latencies):.2f} s, "
            f"maximum {max(latencies):.2f} s ({len(latencies)} proofs)"
        )


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--healthy", type=int, default=0, metavar="N")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    chosen = patients(options.names)
    if not options.healthy:
        examine(filter(hanging, chosen))
        return
    well = [p for p in chosen if not p.marks and p.launch == "torchrun" and p.nproc % 2 == 0]
    well = [p for p in well if "127.0.0.1" not in p.script.read_text()]  # right on one host alone
    examine((well[n % len(well)] for n in range(options.healthy)), 0.05, 0.02)


if __name__ == "__main__":
    main()
