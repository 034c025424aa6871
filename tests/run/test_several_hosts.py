"""A job on two hosts, each under a doctor of its own: network namespaces stand for the hosts."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from ddpdoctor.evidence import REPORT
from ddpdoctor.postmortem.reading import read
from tests.network import ADDRESS, DEVICE, Network, can_make_networks, network
from tests.patience import ENDLESS, within
from tests.run.conftest import HERE, environment, living

JOB = str(HERE / "two_hosts.py")
PORT = "29533"
SOME_MESSAGES = 200
"""Bytes of them; a sign of life is a third of that."""
DOCTOR = ("python", "-m", "ddpdoctor", "run")

pytestmark = pytest.mark.skipif(
    not can_make_networks(), reason="needs root and ip: network namespaces stand for the hosts"
)


@contextmanager
def started(
    folder: Path, *commands: Sequence[str], first: int = 1, **more: str
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """These commands; nothing of them survives. What they say on stderr goes to 1.err, 2.err.

    `first`: the number of the first of them.
    """
    ours = {"GLOO_SOCKET_IFNAME": DEVICE, "PYTHONPATH": os.fspath(HERE.parent.parent), **more}
    processes = []
    try:
        for number, command in enumerate(commands, first):
            with (folder / f"{number}.err").open("wb") as errors:
                processes.append(
                    subprocess.Popen(
                        command, cwd=folder, env=environment(folder, ours), stderr=errors
                    )
                )
        yield processes
    finally:
        within(10, lambda: not living(folder))
        left = living(folder)
        for each in left:
            each.kill()
        for process in processes:
            process.wait()
    assert left == []


def under_doctor(host: int, *job: str) -> list[str]:
    return [*DOCTOR, f"--run-dir=run-{host}", "--format=json", f"--output={host}.json", "--", *job]


def torchrun(host: int, what: str) -> list[str]:
    rdzv = ["--rdzv-backend=c10d", f"--rdzv-endpoint=10.7.0.1:{PORT}", "--rdzv-id=this-run"]
    mine = f"--local-addr={ADDRESS.format(host=host)}"
    return ["torchrun", "--nnodes=2", "--nproc-per-node=2", *rdzv, mine, JOB, what]


def by_hand(host: int, what: str) -> list[str]:
    meeting = ["MASTER_ADDR=10.7.0.1", f"MASTER_PORT={PORT}", "WORLD_SIZE=2"]
    return ["env", *meeting, f"RANK={host - 1}", "LOCAL_RANK=0", "python", JOB, what]


def on_both(hosts: Network, job: Callable[[int, str], list[str]], what: str) -> list[list[str]]:
    return [hosts.on(host, *under_doctor(host, *job(host, what))) for host in (1, 2)]


def report(folder: Path, host: int) -> dict:
    return json.loads((folder / f"{host}.json").read_text())


@pytest.mark.thorough
def test_a_link_that_comes_back_is_no_verdict_and_a_deadlock_after_it_is_proven_on_the_first(
    tmp_path: Path,
) -> None:
    with network(tmp_path) as hosts, started(tmp_path, *on_both(hosts, torchrun, "apart")) as jobs:
        wait_until(lambda: sum(map(has_brought, living(tmp_path))) == 2)
        hosts.link(up=False)
        time.sleep(3)
        hosts.link(up=True)
        time.sleep(3)
        assert not any(b"DDP" in (tmp_path / f"{host}.err").read_bytes() for host in (1, 2))
        (tmp_path / "enough").touch()
        assert [job.wait(ENDLESS) for job in jobs] == [1, 1]
    reports = [report(tmp_path, host) for host in (1, 2)]
    (first,) = (each for each in reports if each["findings"])
    (other,) = (each for each in reports if not each["findings"])
    (finding,) = first["findings"]
    assert (finding["code"], finding["certainty"]) == ("DDP401", "proven")
    assert [first["ended_by"], other["ended_by"]] == ["doctor", "doctor"]
    homes = {rank["rank"]: rank["host"] for rank in first["attempts"][-1]["ranks"]}
    assert sorted(homes.values()) == ["node01", "node01", "node02", "node02"]
    for place in finding["places"]:
        assert place["hosts"] == list(dict.fromkeys(homes[rank] for rank in place["ranks"]))
    away = homes[3] if homes[0] == homes[1] else homes[1]
    assert all(line.startswith(f"nothing was heard of {away} for ") for line in first["not_seen"])
    (line,) = other["not_seen"]
    assert line.endswith(f"{homes[0]} tells it (DDP401 rank-conditional-collective)")
    after = read(tmp_path / "run-1", tmp_path / "run-2")
    (again,) = after.judge()
    assert (again.title, again.certainty, again.ranks) == ("deadlock", "proven", (0,))


@pytest.mark.thorough
def test_a_link_that_goes_down_for_long_is_named_and_without_the_first_doctor_the_job_goes_on(
    tmp_path: Path,
) -> None:
    with network(tmp_path) as hosts, started(tmp_path, *on_both(hosts, by_hand, "well")) as jobs:
        wait_until(lambda: sum(map(has_brought, living(tmp_path))) == 2)
        hosts.link(up=False)
        errors = tmp_path / "1.err"
        wait_until(lambda: b"host-lost" in errors.read_bytes())
        told = errors.read_bytes()
        assert b"nothing is heard of node02, which runs rank 1" in told
        assert b"proven 0" not in told
        assert [job.poll() for job in jobs] == [None, None]
        hosts.link(up=True)
        wait_until(lambda: errors.read_bytes() != told)  # it is taken back
        jobs[0].kill()
        time.sleep(1)
        assert not (tmp_path / "2.json").exists()
        (tmp_path / "enough").touch()
        assert jobs[1].wait(ENDLESS) == 0
    other = report(tmp_path, 2)
    assert (other["exit_code"], other["findings"]) == (0, [])
    assert other["not_seen"] == ["node01 has not told what was found there"]


@pytest.mark.thorough
def test_a_job_of_mpirun_that_is_well_is_whole_to_the_first_doctor_by_a_folder_that_both_see(
    tmp_path: Path,
) -> None:
    """Its daemon on the other host is started by the user's own ssh; here, by another program."""
    with network(tmp_path) as hosts:
        agent = tmp_path / "agent"
        agent.write_text(f'#!/bin/bash\nshift\nexec {" ".join(hosts.on(2))} bash -c "$*"\n')
        agent.chmod(0o755)
        mca = {"plm_rsh_agent": str(agent), "oob_tcp_if_include": DEVICE, "btl": "self,tcp"}
        command = ["mpirun", "--allow-run-as-root", "--host", "node01,node02", "-np", "2"]
        command += [word for name, value in mca.items() for word in ("--mca", name, value)]
        for name in ("PYTHONPATH", "MASTER_ADDR", "MASTER_PORT", "GLOO_SOCKET_IFNAME"):
            command += ["-x", name]
        command += [*DOCTOR, "--run-dir=run", "--", "python", JOB, "well"]
        meeting = {"MASTER_ADDR": "node01", "MASTER_PORT": PORT}
        with started(tmp_path, hosts.on(1, *command), **meeting) as (job,):
            wait_until(lambda: has_been_told(tmp_path / "run", "first", "member"))
            (tmp_path / "enough").touch()
            assert job.wait(ENDLESS) == 0
    assert b"ddpdoctor" not in (tmp_path / "1.err").read_bytes()
    reports = [json.loads(path.read_text()) for path in (tmp_path / "run").rglob(REPORT)]
    assert [r["findings"] for r in reports] == [[], []]
    assert [r["not_seen"] for r in reports] == [[], []]
    seen = sorted([rank["host"] for rank in r["attempts"][-1]["ranks"]] for r in reports)
    assert seen == [["", "node02"], ["node01", "node02"]]
    together = read(tmp_path / "run")
    assert [rank.host for rank in together.attempts[-1][1].ranks] == ["node01", "node02"]
    assert together.judge() == []


def has_been_told(run_dir: Path, *who: str) -> bool:
    """Whether these doctors have told each other something in the folder."""
    return all(
        any(file.stat().st_size > SOME_MESSAGES for file in (run_dir / "doctors").rglob(f"{each}*"))
        for each in who
    )


def wait_until(is_so: Callable[[], bool], seconds: float = ENDLESS) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def has_brought(process: psutil.Process) -> bool:
    """Whether this is a courier that has brought its doctor something."""
    try:
        is_courier = "ddpdoctor.hosts.courier" in process.cmdline()
        return is_courier and process.io_counters().write_chars > SOME_MESSAGES
    except psutil.Error:
        return False
