"""Every patient is diagnosed right: the bug by its code and line, and nothing else.

Ranks are forked, which is quick; a few are started as their authors would start them, and
`python -m benchmarks.patients` does that with all.
"""

from __future__ import annotations

import difflib

import pytest

from ddpdoctor.launch import ForkServer
from tests.patients.patient import FOLDER, Patient, patients
from tests.patients.scoring import told
from tests.patients.ward import Ward
from tests.thorough import first_of, one_in, thorough

EVERYONE = patients()
FORKED = {patient.name: patient for patient in EVERYONE if patient.launch == "torchrun"}
AS_USERS_DO = [
    patient
    for patient in EVERYONE
    if patient.name in ("barrier_on_rank0/buggy", "barrier_on_rank0/clean", "uneven_shards/buggy")
]
STARTING_RANKS = [
    patient
    for patient in EVERYONE
    if patient.launch != "torchrun" and patient.name.startswith(("accumulate_and_sync", "correct"))
]


@pytest.fixture
def forked(server: ForkServer) -> Ward:
    return Ward(server, really=False)


@pytest.fixture
def as_users_do(server: ForkServer) -> Ward:
    return Ward(server, really=True)


@pytest.mark.parametrize("name", one_in(2, FORKED))
def test_a_patient_is_diagnosed_right(forked: Ward, name: str) -> None:
    score = forked.score(FORKED[name])
    assert score.is_good, told(score)


@pytest.mark.parametrize(
    "patient", [*first_of(STARTING_RANKS), *thorough(*AS_USERS_DO)], ids=lambda p: p.name
)
def test_a_patient_that_is_started_by_its_own_launcher_is_diagnosed_right(
    as_users_do: Ward, patient: Patient
) -> None:
    score = as_users_do.score(patient)
    assert score.is_good, told(score)


def test_there_are_enough_patients() -> None:
    sick = [patient for patient in EVERYONE if patient.marks]
    correct = [patient for patient in EVERYONE if patient.script.parent.name == "correct"]
    assert len(sick) >= 40
    assert len(correct) >= 15


@pytest.mark.parametrize("patient", [p for p in EVERYONE if p.marks], ids=lambda p: p.name)
def test_a_clean_twin_differs_by_the_cure_alone(patient: Patient) -> None:
    assert patient.script.name == "buggy.py"
    twin = (FOLDER / patient.script.parent / "clean.py").read_text().splitlines()
    changed = [
        line
        for line in difflib.ndiff(patient.script.read_text().splitlines(), twin)
        if line.startswith(("+ ", "- "))
    ]
    assert 0 < len(changed) <= 30, "\n".join(changed)
