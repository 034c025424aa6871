"""Of correct programs nothing is said above a note."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from ddpdoctor.launch import ForkServer
from tests.patients.patient import Patient
from tests.patients.ward import Ward
from tests.programs.generated import Program, programs


@pytest.fixture(scope="module")
def here(server: ForkServer) -> Ward:
    return Ward(server, really=False)


@settings(
    max_examples=int(os.environ.get("DDPDOCTOR_PROGRAMS", "12")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(programs)
def test_nothing_is_said_of_a_correct_program(here: Ward, program: Program) -> None:
    with tempfile.TemporaryDirectory(prefix="program-") as folder:
        script = Path(folder) / "train.py"
        script.write_text(program.source)
        score = here.score(Patient(script, "", 2, "torchrun", frozenset()))
    assert [(each.code, each.cause) for each in score.noise] == []
