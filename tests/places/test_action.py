"""The GitHub Action: its steps are run as a runner would, with the actions of others left out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS: dict[str, dict[str, Any]] = {
    each["name"]: each for each in ACTION["runs"]["steps"] if "run" in each
}
BAD = "import torch.distributed as dist\nif dist.get_rank() == 0:\n    dist.barrier()\n"


def test_it_is_a_composite_action_as_github_reads_one() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert {*ACTION} <= {"name", "description", "branding", "inputs", "outputs", "runs"}
    for step in ACTION["runs"]["steps"]:
        assert ("uses" in step) != ("run" in step)
        assert "uses" in step or step["shell"] == "bash"
        assert re.fullmatch(r"[\w.-]+/[\w./-]+@v\d+", step.get("uses", "a/b@v1"))


def test_every_input_is_used_and_every_one_that_is_used_is_declared() -> None:
    used = set(re.findall(r"inputs\.(\w+)", (ROOT / "action.yml").read_text()))
    assert used == {*ACTION["inputs"]}


def test_nothing_that_a_caller_says_is_pasted_into_a_script() -> None:
    pasted = [
        each for step in STEPS.values() for each in re.findall(r"\$\{\{(.*?)\}\}", step["run"])
    ]
    assert [each.strip() for each in pasted] == ["steps.lint.outputs.code"]


def perform(step: str, tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run one step in a folder, with this environment's ddpdoctor in place of a fresh one."""
    installed = tmp_path / "ddpdoctor/bin/ddpdoctor"
    installed.parent.mkdir(parents=True)
    installed.write_text(f'#!/bin/sh\nexec {sys.executable} -m ddpdoctor "$@"\n')
    installed.chmod(0o755)
    runner = {
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", STEPS[step]["run"]],
        cwd=tmp_path,
        env={**os.environ, **runner, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_lint_leaves_its_findings_for_code_scanning_and_beside_the_lines(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BAD)
    done = perform("lint", tmp_path, PATHS="train.py", ARGUMENTS="--select DDP4")
    assert done.returncode == 0, "its findings are uploaded before they decide"
    assert (tmp_path / "output").read_text() == "code=1\n"
    assert done.stdout.startswith("::error file=train.py,line=3")
    (run,) = json.loads((tmp_path / "ddpdoctor.sarif").read_text())["runs"]
    assert [each["ruleId"] for each in run["results"]] == ["DDP401"]


@pytest.mark.parametrize(("text", "code"), [(BAD, 1), ("import torch\n", 0)])
def test_the_findings_decide_whether_the_job_fails(text: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(text)
    assert perform("lint", tmp_path, PATHS="train.py", ARGUMENTS="").returncode == 0
    told = (tmp_path / "output").read_text().removeprefix("code=").strip()
    script = STEPS["the findings decide"]["run"].replace("${{ steps.lint.outputs.code }}", told)
    done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], check=False)
    assert done.returncode == code


def test_check_is_told_in_the_summary_of_the_job(tmp_path: Path) -> None:
    done = perform("check", tmp_path, ARGUMENTS="--select DDP101 --nproc 2")
    assert done.returncode == 0, done.stderr
    summary = (tmp_path / "summary").read_text()
    assert summary.startswith("# ddpdoctor check")
    assert "| broken | reproduced |" in summary


@pytest.mark.parametrize(
    ("command", "wanted"), [("lint", "{here}"), ("check", "{here}[torch]"), ("run", None)]
)
def test_what_is_installed_is_what_the_command_needs(
    command: str, wanted: str | None, tmp_path: Path
) -> None:
    """In an environment of its own: the `python` that makes it notes down what its pip is asked."""
    (tmp_path / "python").write_text(
        '#!/bin/sh\nmkdir -p "$3/bin"; cp "$0.pip" "$3/bin/pip"; chmod +x "$3/bin/pip"\n'
    )
    (tmp_path / "python").chmod(0o755)
    asked = tmp_path / "asked"
    (tmp_path / "python.pip").write_text(f'#!/bin/sh\necho "$PIP_EXTRA_INDEX_URL $*" > {asked}\n')
    path = f"{tmp_path}:{os.environ['PATH']}"
    variables = {"PATH": path, "COMMAND": command, "HERE": "/an/action", "PIP_EXTRA_INDEX_URL": ""}
    done = perform("install", tmp_path / "temp", **variables)
    assert done.returncode == (2 if wanted is None else 0), done.stderr
    if wanted is None:
        assert done.stdout == "::error::command is lint or check, not run\n"
        assert not asked.exists()
    else:
        index, *said = asked.read_text().split()
        said = said if command == "check" else [index, *said]
        assert said == ["install", "--quiet", wanted.format(here="/an/action")]


def test_a_mistake_fails_the_step(tmp_path: Path) -> None:
    done = perform("check", tmp_path, ARGUMENTS="--select=nothing")
    assert done.returncode == 2
    assert "ddpdoctor: " in done.stderr
    assert not (tmp_path / "summary").exists()
