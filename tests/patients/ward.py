"""Runs patients: fast, with ranks forked from a fork server, or as a user runs them."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import TypeAdapter
from torch.nn import Module
from torch.nn.modules.module import register_module_module_registration_hook
from torch.nn.parallel import DistributedDataParallel

from ddpdoctor.annotate import annotate
from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose import diagnose
from ddpdoctor.launch import ForkServer, Job
from ddpdoctor.observation import Observation
from tests.patients.patient import Patient, Score

DEADLINE = 120.0
PRELOAD = ("ddpdoctor.watch.watching", "torch.utils.data", "torch.nn.parallel", "torch.optim")
_FINDINGS = TypeAdapter(tuple[Finding, ...])


_WRAPPERS: list[Module] = []


def run_script(script: str) -> None:
    """What a forked rank does: be the script.

    Its wrappers live until it ends. One that outlives `destroy_process_group` is its last owner,
    and may then hang for ever where it is freed (torch 2.13): see `stack/process_group.py`.
    """

    def keep(holder: Module, name: str, child: object) -> None:
        if isinstance(holder, DistributedDataParallel):
            _WRAPPERS.append(holder)

    register_module_module_registration_hook(keep)
    sys.argv[:] = [script]
    sys.path.insert(0, str(Path(script).parent))
    runpy.run_path(script, run_name="__main__")


class Ward:
    """Where patients are watched. Scripts that start their own ranks are run as a user would."""

    def __init__(self, server: ForkServer, *, really: bool) -> None:
        self._server, self._really = server, really
        self._last_words = ""

    def score(self, patient: Patient) -> Score:
        """Run one patient to its end, and note what was said.

        No patient aborts by itself. Where torch did (once in thousands of runs), what was said of
        that is true and of another program: it runs again, and the abort's own words are a warning.
        """
        score = self._scored(patient)
        if score.is_good or not self._last_words:
            return score
        warnings.warn(f"{patient.name} was aborted: {self._last_words}", stacklevel=2)
        return self._scored(patient)

    def _scored(self, patient: Patient) -> Score:
        self._last_words = ""
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="patient-") as folder:
            if self._really or patient.launch != "torchrun":
                findings = _as_a_user(patient, Path(folder))
            else:
                findings = self._forked(patient, Path(folder))
        return Score(patient, findings, time.monotonic() - began)

    def _forked(self, patient: Patient, folder: Path) -> tuple[Finding, ...]:
        home, run_dir = folder / "home", folder / "run"
        home.mkdir()
        run_dir.mkdir()
        job = Job(
            target=f"{Path(__file__).resolve()}:run_script",
            nproc=patient.nproc,
            run_dir=run_dir,
            kwargs={"script": str(patient.script)},
            env={"TORCH_DISTRIBUTED_DEBUG": "OFF"},
            watch=True,
            cwd=home,
        )
        observation = Observation(run_dir, patient.nproc)
        deadline = time.monotonic() + DEADLINE
        with self._server.launch(job) as world:
            while not world.ended and time.monotonic() < deadline:
                if observation.poll(world.poll()):
                    break
                world.wait_for_news(0.02)
            world.kill()
            observation.poll(world.poll())
        for rank in observation.evidence.ranks:
            if rank.fate is not None and rank.fate.signal == signal.SIGABRT:
                self._last_words += job.rank_file(rank.rank, "stderr").read_text("utf-8", "replace")
        return tuple(annotate(diagnose(observation.evidence)))


def _as_a_user(patient: Patient, folder: Path) -> tuple[Finding, ...]:
    report = folder / "report.json"
    home = folder / "home"
    home.mkdir()
    doctor = [sys.executable, "-m", "ddpdoctor", "run", "--format=json", f"--output={report}"]
    search = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    done = subprocess.run(
        [*doctor, "--", *patient.command],
        cwd=home,
        env={**os.environ, "PATH": search, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=4 * DEADLINE,
        check=False,
    )
    if not report.exists():
        raise RuntimeError(f"{patient.name}: no report\n{done.stdout}\n{done.stderr}")
    return _FINDINGS.validate_python(json.loads(report.read_text())["findings"], strict=False)


@contextmanager
def ward(*, really: bool = False) -> Iterator[Ward]:
    """A ward with a fork server of its own."""
    with ForkServer(PRELOAD) as server:
        yield Ward(server, really=really)
