"""What `env` says about NCCL is true of the NCCL that is installed, on a GPU that is here."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ddpdoctor.environment.checks import findings
from ddpdoctor.environment.facts import collect, named_files, nccl_file, nccl_net
from ddpdoctor.environment.facts.machine import Machine
from ddpdoctor.environment.facts.variables import variables
from ddpdoctor.environment.model import Environment, Torch

Outcomes = dict[str, tuple[dict[str, str], str]]
# One rank has nobody to talk to, and needs no way of talking.
NOT_BY_ONE_RANK = re.compile("NCCL_(ALGO|PROTO)")


@pytest.fixture(scope="module")
def here() -> Environment:
    """This machine, if it can show what NCCL does."""
    known = collect(os.environ)
    torch = known.torch
    if not isinstance(torch, Torch) or not torch.visible_gpus or known.lacks_nccl:
        pytest.skip("needs a GPU, and a torch with NCCL")
    return known


@pytest.fixture(scope="module")
def outcomes(here: Environment, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    script = Path(__file__).with_name("nccl_claims.py")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, script, tmp_path_factory.mktemp("nccl")],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=400,
        check=True,
    )
    told: Outcomes = json.loads(ran.stdout)
    return told


def errors(here: Environment, environ: dict[str, str]) -> set[str]:
    """Codes of the errors under these variables, of which the machine has none by itself."""
    machine = Machine({**environ, "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")})
    in_files = nccl_file.settings(machine)
    facts = {
        "variables": variables(machine, in_files),
        "nccl_file": in_files,
        "net_plugins": nccl_net.net_plugins(machine),
        "unusable_files": named_files.unusable_files(machine),
    }
    told = findings(Environment(**{**dict(here), **facts}))
    return {one.code for one in told if one.severity == "error"}


def test_nccl_starts_wherever_env_is_silent_and_nowhere_else(
    here: Environment, outcomes: Outcomes
) -> None:
    """Each of its variables, set to a word, and beyond its bounds; a few settings by name."""
    assert len(outcomes) > 200
    wrong = {
        name: said
        for name, (environ, said) in outcomes.items()
        if not name.startswith("devices") and name != "two ranks"
        if not NOT_BY_ONE_RANK.match(next(iter(environ), ""))
        if bool(errors(here, environ)) == said.startswith("sum 1 ")
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ("two ranks", "Duplicate GPU detected"),
        ("interface eth99", "no socket interface found"),
        ("file eth99", "no socket interface found"),
        ("net IB", "Failed to initialize any NET plugin"),
        ("net Sockets", "Failed to initialize any NET plugin"),
        ("not waiting", "Attempt to use communicator before the previous operation"),
        ("devices none", "No CUDA GPUs are available"),
    ],
)
def test_nccl_fails_with_the_words_that_env_tells(
    claim: str, words: str, outcomes: Outcomes
) -> None:
    assert words in outcomes[claim][1]


def test_an_unhidden_gpu_is_seen_and_a_hidden_one_is_not(outcomes: Outcomes) -> None:
    assert outcomes["nothing set"][1].startswith("sum 1 ")
    assert not outcomes["devices twice"][1].startswith("sum")
    assert outcomes["devices beyond"][1] == "sum 1 on 1"
