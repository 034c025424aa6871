"""What a person reads when marked tests fail. Each run here is a pytest of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import psutil
import pytest

from tests.patience import ENDLESS
from tests.thorough import first_of

MARK = "DDPDOCTOR_TEST_REPORTS"
# Without the plugins that happen to be installed, which cost seconds.
PLUGINS = ["-p", "ddpdoctor.pytest_plugin", "-p", "xdist.plugin"]
SETTINGS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200"}

BAD_TESTS = """
import datetime, os, sys, time
import pytest, torch
import torch.distributed as dist

if os.environ.get("RANK") == "1" and "import" in os.environ["WHAT"]:
    raise ImportError("rank 1 alone lacks something")

@pytest.fixture
def fails_late():
    yield
    assert dist.get_rank() != 1, "late"

@pytest.mark.distributed(nproc=3, timeout=600)
def test_assertion():
    print("printed by rank", dist.get_rank())
    value = dist.get_rank()
    assert value != 1, "one is wrong"
    dist.barrier()

@pytest.mark.distributed(timeout=8)
def test_hang():
    if dist.get_rank() == 0:
        dist.barrier()
    time.sleep(600)  # the sleeping line

@pytest.mark.distributed(timeout=600)
def test_deadlock():
    total = torch.ones(1)
    dist.all_reduce(total)
    if dist.get_rank() == 0:
        dist.barrier()  # the culprit

@pytest.mark.distributed(backend=None, timeout=600)
def test_gives_up():
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=1))
    if dist.get_rank() == 0:
        with pytest.raises(RuntimeError):
            dist.barrier()

def train(call):
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        call(model)(torch.randn(3, 4) + dist.get_rank()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

@pytest.mark.distributed
def test_diverges():
    train(lambda model: model.module)  # past the wrapper

@pytest.mark.distributed(watch=False)
def test_diverges_on_purpose():
    train(lambda model: model.module)

@pytest.mark.distributed
def test_trains():
    train(lambda model: model)

@pytest.mark.distributed
def test_crash():
    if dist.get_rank() == 1:
        os.abort()
    dist.barrier()

@pytest.mark.distributed
def test_leaves():
    if dist.get_rank() == 1:
        os._exit(0)
    dist.barrier()

@pytest.mark.distributed
def test_skip():
    if dist.get_rank() == 1:
        pytest.skip("rank 1 has had enough")
    dist.barrier()

@pytest.mark.distributed
def test_teardown(fails_late):
    pass

@pytest.mark.xfail(strict=True, reason="they say")
@pytest.mark.distributed
def test_unexpected_pass():
    pass

@pytest.mark.distributed(nprocs=2)
def test_misspelt():
    pass

@pytest.mark.distributed(nproc=0)
def test_nobody():
    pass

@pytest.mark.multigpu(n=64)
def test_gpus():
    pass

def test_plain(shared_path):
    assert list(shared_path.iterdir()) == []
"""


def start(folder: Path, *arguments: str, what: str = "") -> subprocess.Popen[str]:
    # pytest repeats whole messages in its summary where CI or BUILD_NUMBER is set.
    ours = {name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER")}
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *PLUGINS, *arguments],
        cwd=folder,
        env={**ours, MARK: str(folder), "WHAT": what, **SETTINGS},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def number_of(file: Path, mark: str) -> int:
    lines = file.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(mark))


def run(folder: Path, *arguments: str, what: str = "") -> tuple[int, str]:
    process = start(folder, *arguments, what=what)
    output, _ = process.communicate(timeout=ENDLESS)
    assert living(folder) == []
    return process.returncode, output


def living(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            alive = process.status() != psutil.STATUS_ZOMBIE
            if alive and process.environ().get(MARK) == str(folder):
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_bad.py").write_text(BAD_TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    return tmp_path


@pytest.mark.parametrize("workers", first_of(["0", "2"]))
def test_every_bad_test_is_told_as_what_it_is(folder: Path, workers: str) -> None:
    status, output = run(folder, "-n", workers, "-rfsxX", "--junitxml=report.xml")
    assert status == 1
    assert "10 failed, 4 passed, 2 skipped" in output, output

    lines = output.splitlines()
    for line in (
        "FAILED test_bad.py::test_assertion - Failed: rank 1 (of 0-2): AssertionError: one is"
        " wrong",
        "FAILED test_bad.py::test_hang - Failed: not over after 8 s on ranks 0, 1 (of 0-1)",
        "FAILED test_bad.py::test_deadlock - Failed: ✖ DDP401 rank-conditional-collective ·"
        " deadlock proven",
        "FAILED test_bad.py::test_diverges - Failed: ✖ DDP303 bypassed-wrapper · proven",
        "FAILED test_bad.py::test_crash - Failed: rank 1 (of 0-1): killed by SIGABRT before the"
        " test was over",
        "FAILED test_bad.py::test_leaves - Failed: rank 1 (of 0-1): exited with status 0 before the"
        " test was over",
        "FAILED test_bad.py::test_teardown - Failed: rank 1 (of 0-1): teardown of the fixtures:"
        " AssertionError: late",
        "FAILED test_bad.py::test_misspelt - Failed: marker of test_misspelt: distributed() got"
        " an unexpected keyword argument 'nprocs'",
        "FAILED test_bad.py::test_nobody - Failed: marker of test_nobody: nproc must be a number"
        " of ranks, 1 or more, and is 0",
    ):
        assert any(each.startswith(line) for each in lines), f"{line}\n\n{output}"
    assert "FAILED test_bad.py::test_unexpected_pass" in output
    assert "rank 1: rank 1 has had enough" in output
    assert "needs 64 GPUs, there are" in output

    assert ">       assert value != 1" in output, "the assertion is rewritten and shown in place"
    assert "assert 1 != 1" in output
    assert output.count("as a consequence") >= 3
    assert "rank 2 stdout call" in output
    assert "printed by rank 2" in output
    assert output.count("in test_hang") == 2, "one stack of each rank"
    culprit = number_of(folder / "test_bad.py", "# the culprit")
    assert f"--> test_bad.py:{culprit}" in output
    assert "ranks 1" not in output
    assert re.search(rf"rank 0 +test_bad.py:{culprit} ", output)
    assert "_pytest/python.py" not in output, "the machinery is left out"

    cases = ElementTree.parse(folder / "report.xml").iter("testcase")
    assert len(list(cases)) == 16, "one report a test"


@pytest.mark.thorough
def test_an_import_that_fails_on_one_rank_alone_is_told(folder: Path) -> None:
    status, output = run(folder, "-k", "test_assertion", what="import")
    assert status == 1
    assert "rank 1 (of 0-2): the test could not be collected" in output
    assert "ImportError: rank 1 alone lacks something" in output


@pytest.mark.thorough
def test_options_of_the_command_line_reach_the_ranks(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "def pytest_addoption(parser): parser.addoption('--colour', default='none')"
    )
    (tmp_path / "test_option.py").write_text(
        "import pytest\n"
        "@pytest.mark.distributed\n"
        "def test_colour(request, tmp_path):\n"
        "    assert request.config.getoption('--colour') == 'blue'\n"
        "    assert not request.config.getoption('-k')\n"
    )
    status, output = run(tmp_path, "--colour=blue", "-k", "colour")
    assert status == 0, output
    assert {path.name for path in tmp_path.iterdir()} <= {
        "conftest.py",
        "test_option.py",
        "__pycache__",
    }


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["-k", "test_gpus"], 0),
        (["-k", "test_gpus", "--require-multigpu"], 1),
        (["-m", "multigpu", "--require-multigpu", "-n", "1"], 1),
        (["-k", "test_plain", "--require-multigpu"], 1),
    ],
)
def test_a_session_that_required_multigpu_tests_fails_if_none_was_executed(
    tmp_path: Path, arguments: list[str], status: int
) -> None:
    (tmp_path / "test_without_torch.py").write_text(
        "import pytest\n"
        "@pytest.mark.multigpu(n=64)\n"
        "def test_gpus(): pass\n"
        "def test_plain(): pass\n"
    )
    told, output = run(tmp_path, *arguments)
    assert told == status, output
    assert ("no multigpu test was executed" in output) == bool(status)


@pytest.mark.thorough
@pytest.mark.parametrize("number", first_of([signal.SIGINT, signal.SIGTERM, signal.SIGKILL]))
def test_a_pytest_that_is_ended_leaves_nobody(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "test_endless.py").write_text(
        "import pathlib, pytest, time\n"
        "import torch.distributed as dist\n"
        "@pytest.mark.distributed\n"
        "def test_endless():\n"
        f"    pathlib.Path({str(tmp_path)!r}, f'ready-{{dist.get_rank()}}').touch()\n"
        "    time.sleep(600)\n"
    )
    process = start(tmp_path)
    while len(list(tmp_path.glob("ready-*"))) < 2:
        assert process.poll() is None
        time.sleep(0.02)
    assert len(living(tmp_path)) == 5  # pytest, server, keeper, two ranks
    os.killpg(process.pid, number)
    process.communicate(timeout=ENDLESS)
    deadline = time.monotonic() + 60
    while living(tmp_path):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_plugin_is_cheap_to_have() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules)\n"
        "import ddpdoctor.pytest_plugin\n"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['ddpdoctor', 'ddpdoctor.pytest_plugin']"
