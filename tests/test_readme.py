"""What the README and CI say, against what is there."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from ddpdoctor import cli

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def command(name: str) -> str:
    """The command that .ci/run takes from the README, taken by .ci/run's own line."""
    script = f'source <(sed -n "/^readme()/p" .ci/run); readme "{name}"'
    return subprocess.run(
        ["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def test_ci_runs_the_very_test_command_that_the_readme_gives() -> None:
    tests = command("tests")
    assert f"<!-- tests -->\n```sh\n{tests}```\n<!-- end -->" in README
    assert tests.startswith("python3 -m venv .venv && ")
    assert "pytest" in tests
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert '"$(readme tests)"' in run
    others = [line for line in run.splitlines() if "pytest" in line]
    apart = r" tests/(run/launchers -k |places/test_callbacks\.py$)"
    assert all(re.search(apart, line) for line in others), (
        "the same, but for launchers and trainers"
    )


def test_the_readme_gives_the_main_job_as_a_whole_command() -> None:
    job = command("main job")
    assert f"<!-- main job -->\n```sh\n{job}```\n<!-- end -->" in README
    assert job.startswith("python3 -m venv .venv && ")
    assert job.endswith(".venv/bin/ddpdoctor check --nproc 4\n")


def test_the_first_thing_in_the_readme_is_what_run_says(tmp_path: Path) -> None:
    sample = re.search(r"\$ ddpdoctor (run -- torchrun .*)\n((?:.|\n)*?)\n```", README)
    assert sample
    *words, script = sample[1].split()
    said = tmp_path / "said.txt"
    torchrun = str(Path(sys.executable).with_name("torchrun"))
    words = [torchrun if word == "torchrun" else word for word in words]
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    done = subprocess.run(
        [sys.executable, "-m", "ddpdoctor", "run", "-o", str(said), *words[1:], script],
        cwd=tmp_path,
        capture_output=True,
        env={**os.environ, "COLUMNS": "100"},
        check=False,
        timeout=300,
    )
    assert done.returncode == 1

    def timeless(text: str) -> str:
        return re.sub(r"proven \d+\.\d s after", "proven a moment after", text)

    assert timeless(said.read_text(encoding="utf-8")).startswith(timeless(sample[2]) + "\n\n")


COMMANDS = "|".join(get_command(cli.application()).commands)


@pytest.mark.parametrize("line", re.findall(rf"ddpdoctor ((?:{COMMANDS})\b(?!:).*)", README))
def test_every_command_in_the_readme_is_one(line: str) -> None:
    words = line.split("#")[0].split("`")[0].split()
    if "--" in words:  # what follows is the user's own command
        words = words[: words.index("--")]
    assert cli.run([*words, "--help"]) == 0


def test_the_test_in_the_readme_passes_on_its_ranks(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(import pytest\n.*?)```", README, re.DOTALL)
    (tmp_path / "test_example.py").write_text(example)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_example.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout


def test_constraints_pin_everything_that_is_asked_for() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", pin) for pin in pins)
    pinned = {re.sub(r"[-_.]+", "-", pin.split("==")[0]).lower() for pin in pins}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    asked = [*project["dependencies"], *(one for extra in extras for one in extra)]
    names = {re.split(r"[^A-Za-z0-9._-]", one)[0].replace("_", "-").lower() for one in asked}
    assert names - {"ddpdoctor"} <= pinned
    assert "torch==2.13.0" in pins
