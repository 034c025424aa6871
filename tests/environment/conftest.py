"""An environment that is healthy, and what `env` says when a part of it is not."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from healthy_machine import ENVIRONMENT

from ddpdoctor.catalog import Finding
from ddpdoctor.environment.checks import findings
from ddpdoctor.environment.facts import launcher, network, variables
from ddpdoctor.environment.facts.machine import Machine
from ddpdoctor.environment.model import Environment
from tests.patience import ENDLESS


def _environment_with(environ: Mapping[str, str], **facts: Any) -> Environment:
    machine = Machine(environ)
    by_variables = {
        "variables": variables.variables(machine),
        "launchers": launcher.launchers(machine),
        "context": launcher.context(machine),
    }
    return Environment(**{**dict(ENVIRONMENT), **by_variables, **facts})


def _child(code: str, *prefix: str, **environ: str) -> str:
    ran = subprocess.run(
        [*prefix, sys.executable, "-c", code],
        env={"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", ""), **environ},
        capture_output=True,
        text=True,
        timeout=ENDLESS,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


@pytest.fixture(scope="session")
def child() -> Callable[..., str]:
    """Output of a fresh interpreter that runs some code under some variables."""
    return _child


@pytest.fixture(scope="session")
def environment_with() -> Callable[..., Environment]:
    """The healthy machine under some variables, and with some facts instead of its own."""
    return _environment_with


@pytest.fixture(scope="session")
def diagnose() -> Callable[..., list[Finding]]:
    """The findings about the healthy machine under some variables, with some other facts."""

    def diagnose_(environ: Mapping[str, str] | None = None, **facts: Any) -> list[Finding]:
        environ = environ or {}
        if "MASTER_ADDR" in environ and "master" not in facts:
            facts["master"] = (
                Machine(environ)
                .find(network.master)
                .model_copy(
                    update={"answer": "not tried"}  # these tests do not speak to the network
                )
            )
        return findings(_environment_with(environ, **facts))

    return diagnose_
