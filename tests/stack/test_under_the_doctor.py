"""The doctor says nothing of its own stack: not of a run of it, and not of its source."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ddpdoctor.stack
from ddpdoctor.lint.linter import lint
from tests.thorough import first_of

STACK = Path(ddpdoctor.stack.__file__).parent
SMALL = {
    "protein": "--epochs 2 --n-synthetic 20 --hidden-dim 8 --batch-size 4 --n-radial 8",
    "crystal": "--epochs 2 --width 8 --heads 2 --layers 1 --n-radial 8 --cutoff 4",
    "generation": "--epochs 2 --global-batch 300 --width 16 --heads 2 --sampling-steps 2",
    "detection": "--epochs 4 --stop-epoch 2 --n-images 30 --hidden-dim 8 --batch-size 4",
}


@pytest.mark.parametrize("system", first_of(SMALL))
def test_a_run_of_a_system_has_no_finding(system: str, tmp_path: Path) -> None:
    launch = "torch.distributed.run --standalone --nproc-per-node=2 -m ddpdoctor train"
    command = [sys.executable, "-m", *launch.split(), system, *SMALL[system].split()]
    done = subprocess.run(
        [sys.executable, "-m", "ddpdoctor", "run", "--", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "DDP" not in done.stderr
    assert "on 2 rank(s)" in done.stdout
    assert (tmp_path / "output" / "results.json").is_file()


def test_lint_finds_nothing_in_the_stack_and_in_the_examples() -> None:
    examples = STACK.parent.parent / "examples"
    folders = [str(folder) for folder in (STACK, examples) if folder.is_dir()]
    assert [str(each) for each in lint(folders).diagnostics] == []
