"""What lint sees of the patients: the bug on its marked line, and nothing on a correct script."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ddpdoctor.launch import ForkServer
from ddpdoctor.lint.linter import lint as lint_files
from tests.lint.conftest import Lint
from tests.patients.patient import Patient, patients
from tests.patients.scoring import told
from tests.patients.ward import Ward
from tests.thorough import one_in

EVERYONE = patients()
SICK = [patient for patient in EVERYONE if patient.marks]
WELL = [patient for patient in EVERYONE if not patient.marks]

# What the source alone does not say, and why.
NOT_IN_THE_SOURCE = {
    "critic_outside_ddp": "whether a second model is meant to be wrapped is its author's to say",
    "head_sized_by_the_shard": "that the shards have different classes is a fact of the data",
    "padded_validation": "that the set does not divide by the ranks is a fact of the data",
    "preprocessing_outlasts_the_timeout": "how long the work takes is a fact of the run",
    "ragged_predictions": "that the ranks' tensors differ in size is a fact of the data",
    "reinitialised_after_wrapping": "that the ranks' generators differ there is a fact of the run",
    "started_by_plain_python": "that no launcher starts it stands in no script",
    "uneven_shards": "that the set does not divide by the ranks is a fact of the data",
    "uneven_short_streams": "that the files differ in length is a fact of the data",
    "uneven_streams": "that the files differ in length is a fact of the data",
}
FIXED_BY_LINT = (
    "bare_model_in_the_loop",
    "clipped_while_scaled",
    "losses_added_with_their_graphs",
    "loss_asked_of_the_wrapper",
    "metrics_in_the_order_of_a_set",
    "needless_search",
    "reentrant_checkpointing",
    "same_order_every_epoch",
    "shuffle_and_sampler",
)


def named(patient: Patient) -> set[tuple[str, int]]:
    """Code and line of each finding on one patient."""
    return {(each.code, each.line) for each in lint_files([str(patient.script)]).diagnostics}


def accused(patient: Patient) -> set[tuple[str, int]]:
    """The same, without what is told as information."""
    found = lint_files([str(patient.script)]).diagnostics
    return {(each.code, each.line) for each in found if not each.harmless}


def is_found(patient: Patient) -> bool:
    return bool(named(patient) & patient.marks)


def test_the_bugs_that_stand_in_the_source_are_found_on_their_lines() -> None:
    visible = [each for each in SICK if each.script.parent.name not in NOT_IN_THE_SOURCE]
    missed = [each.name for each in visible if not is_found(each)]
    assert len(missed) <= len(visible) // 10, missed


@pytest.mark.parametrize("name", NOT_IN_THE_SOURCE)
def test_a_bug_that_is_said_to_be_invisible_is_not_found(name: str) -> None:
    assert not any(is_found(each) for each in SICK if each.script.parent.name == name)


@pytest.mark.parametrize("patient", WELL, ids=lambda patient: patient.name)
def test_a_correct_script_is_not_accused(patient: Patient) -> None:
    assert not accused(patient)


@pytest.fixture(scope="module")
def forked(server: ForkServer) -> Ward:
    return Ward(server, really=False)


@pytest.mark.parametrize("name", one_in(3, FIXED_BY_LINT))
def test_a_fixed_patient_is_silent_and_runs_clean(lint: Lint, forked: Ward, name: str) -> None:
    patient = next(each for each in SICK if each.script.parent.name == name)
    shutil.copy(patient.script, "train.py")
    lint("train.py", fix=True)
    once = Path("train.py").read_bytes()
    lint("train.py", fix=True)
    assert Path("train.py").read_bytes() == once != patient.script.read_bytes()
    left = json.loads(lint("train.py", format="json")[1])["findings"]
    assert not {each["code"] for each in left} & {code for code, _ in patient.marks}
    cured = replace(patient, script=Path("train.py").absolute(), marks=frozenset())
    score = forked.score(cured)
    assert score.is_good, told(score)
