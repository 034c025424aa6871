"""`ddpdoctor env` as a user runs it."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest
from quick import QUICK_TORCH

from tests.patience import ENDLESS


@pytest.fixture
def bare() -> dict[str, str]:
    """A clean environment in which importing torch takes no time."""
    return {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(QUICK_TORCH)}


def env(environ: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ddpdoctor", "env", *options],
        env=environ,
        capture_output=True,
        text=True,
        timeout=ENDLESS,
    )


def test_faults_end_with_1_and_the_document_holds_facts_and_findings(bare: dict[str, str]) -> None:
    faults = {
        "NCCL_TIMEOUT": "3600",
        "GLOO_SOCKET_IFNAME": "eth99",
        "NCCL_API_KEY": "s3cr3t-value",
        "RANK": "0",
        "WORLD_SIZE": "4",
    }
    ended = env({**bare, **faults}, "--format", "json")
    assert ended.returncode == 1
    assert ended.stderr == ""
    assert "s3cr3t" not in ended.stdout
    document = json.loads(ended.stdout)
    assert document["schema_version"] == 4
    assert document["data"]["environment"]["torch"]["version"] == "2.13.0"
    codes = {(one["code"], one["severity"]) for one in document["findings"]}
    assert {("DDP109", "warning"), ("DDP107", "error"), ("DDP105", "warning")} <= codes


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_a_rank_that_torchrun_started_is_healthy() -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1"]
    ended = subprocess.run(
        [*torchrun, "-m", "ddpdoctor", "env", "--format", "json"],
        env={"PATH": os.environ.get("PATH", ""), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=ENDLESS,
    )
    document = json.loads(ended.stdout)
    assert document["data"]["environment"]["launchers"][0]["name"] == "torchrun"
    assert [one["code"] for one in document["findings"] if one["severity"] != "info"] == []


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--nproc", "0"), "--nproc"),
        (("--nproc", "many"), "--nproc"),
        (("--checkpoints", "/nowhere"), "/nowhere is no folder"),
        (("--format", "xml"), "xml"),
        (("-o", "/nowhere/report"), "/nowhere/report"),
    ],
)
def test_what_it_cannot_do_is_one_line(
    options: tuple[str, ...], word: str, bare: dict[str, str]
) -> None:
    ended = env(bare, *options)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert len(ended.stderr.splitlines()) == 1
    assert word in ended.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv of util-linux")
@pytest.mark.skipif(not shutil.which("ip"), reason="needs ip of iproute2")
def test_a_user_without_rights_network_and_home_is_told_all_the_same(bare: dict[str, str]) -> None:
    # The right to read is kept: what is tested may lie in a folder of root.
    nobody = (
        *("unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"),
        *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
        *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
    )
    ended = subprocess.run(
        [*nobody, sys.executable, "-m", "ddpdoctor", "env", "--format", "json"],
        env={**bare, "HOME": "/nonexistent"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=ENDLESS,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    findings = json.loads(ended.stdout)["findings"]
    assert [one for one in findings if one["severity"] != "info"] == []


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_a_clean_environment_ends_with_0(bare: dict[str, str], form: str) -> None:
    ended = env({**bare, "GLOO_SOCKET_IFNAME": "lo", "NCCL_DEBUG": "WARN"}, "--format", form)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "2.13.0" in ended.stdout


def test_what_it_does_beside_importing_torch_costs_less_than_a_second(bare: dict[str, str]) -> None:
    """Of CPUs, its children's included: how long that takes is up to who else wants them."""

    def seconds() -> float:
        command = [sys.executable, "-m", "ddpdoctor", "env", "-o", os.devnull]
        child = subprocess.Popen(command, env=bare)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode in (0, 1)  # this machine may have something
        return used.ru_utime + used.ru_stime

    assert min(seconds() for _ in range(3)) < 1.0  # the first may have to compile
