"""A job under Slurm: its controller on one host, its daemons on both; the script of examples/."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ddpdoctor.evidence import REPORT
from ddpdoctor.postmortem.reading import read
from tests.network import NAME, Network, can_make_networks, network
from tests.patience import ENDLESS
from tests.run.conftest import HERE, living
from tests.run.test_several_hosts import (
    DOCTOR,
    JOB,
    PORT,
    has_been_told,
    has_brought,
    started,
    wait_until,
)

EXAMPLE = HERE.parent.parent / "examples" / "slurm.sh"
MEETING = ("env", "MASTER_ADDR=node01", f"MASTER_PORT={PORT}")
DAEMONS = ("slurmctld", "slurmd", "srun", "sbatch")
_CONF = """
ClusterName=test
SlurmctldHost=node01
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/slurm
SlurmdSpoolDir={folder}/slurm/%n
SlurmctldPidFile={folder}/slurm/controller.pid
SlurmdPidFile={folder}/slurm/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0
JobAcctGatherType=jobacct_gather/none
PartitionName=all Nodes=ALL Default=YES State=UP
NodeName=node01 NodeAddr=10.7.0.1 CPUs=2
NodeName=node02 NodeAddr=10.7.0.2 CPUs=2
"""

pytestmark = pytest.mark.skipif(
    not can_make_networks() or not all(map(shutil.which, DAEMONS)),
    reason="needs root, ip and slurm-wlm",
)


@contextmanager
def slurm(hosts: Network, folder: Path) -> Iterator[dict[str, str]]:
    """Its daemons, ready for jobs; where its commands find it."""
    for name in ("", "node01", "node02"):
        (folder / "slurm" / name).mkdir()
    conf = folder / "slurm" / "slurm.conf"
    conf.write_text(_CONF.format(folder=folder))
    ours = {**os.environ, "SLURM_CONF": str(conf)}
    commands = [hosts.on(1, "slurmctld", "-D")]
    commands += [hosts.on(host, "slurmd", "-D", "-N", NAME.format(host=host)) for host in (1, 2)]
    output = (folder / "slurm" / "daemons.log").open("wb")
    daemons = [subprocess.Popen(each, env=ours, stdout=output, stderr=output) for each in commands]
    try:
        idle = hosts.on(1, "sinfo", "--noheader", "--states=idle", "--format=%D")
        wait_until(lambda: subprocess.run(idle, env=ours, capture_output=True).stdout == b"2\n")
        yield {"SLURM_CONF": str(conf)}
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            daemon.wait(ENDLESS)
        output.close()


@pytest.mark.thorough
def test_the_example_for_slurm_gives_one_verdict_of_both_hosts(tmp_path: Path) -> None:
    with network(tmp_path) as hosts, slurm(hosts, tmp_path) as where:
        command = hosts.on(1, "sbatch", "--wait", "--output=out", str(EXAMPLE), JOB, "apart")
        with started(tmp_path, command, **where) as (job,):
            wait_until(lambda: has_been_told(tmp_path / "runs" / "1", "first", "member"))
            (tmp_path / "enough").touch()
            assert job.wait(ENDLESS) == 1
    told = (tmp_path / "out").read_text()
    assert told.count("DDP401 rank-conditional-collective · deadlock proven") == 1
    reports = [json.loads(path.read_text()) for path in (tmp_path / "runs").rglob(REPORT)]
    assert sorted(len(each["findings"]) for each in reports) == [0, 1]
    (finding,) = (finding for each in reports for finding in each["findings"])
    assert {host for place in finding["places"] for host in place["hosts"]} == {"node01", "node02"}
    together = read(tmp_path / "runs" / "1")
    assert [each.title for each in together.judge()] == ["deadlock"]


@pytest.mark.thorough
def test_a_doctor_for_each_task_of_srun_gives_one_verdict_of_all(tmp_path: Path) -> None:
    with network(tmp_path) as hosts, slurm(hosts, tmp_path) as where:
        command = ["srun", "--nodes=2", "--ntasks=4", *MEETING, *DOCTOR, "--", "python", JOB]
        with started(tmp_path, hosts.on(1, *command, "apart"), **where) as (job,):
            wait_until(lambda: sum(map(has_brought, living(tmp_path))) == 4)
            (tmp_path / "enough").touch()
            assert job.wait(ENDLESS) == 1
    told = (tmp_path / "1.err").read_text()
    assert told.count("DDP401 rank-conditional-collective · deadlock proven") == 1
    (row,) = (line for line in told.splitlines() if "all_reduce #" in line)
    assert row.split("two_hosts.py")[0].strip() == "ranks 1-3 on node01, node02"


@pytest.mark.thorough
def test_a_job_that_hangs_already_is_looked_at_on_all_hosts_by_srun(tmp_path: Path) -> None:
    over = "srun --jobid=1 --overlap --ntasks=1 --nodes=1 --nodelist={host} --chdir=/"
    attach = [sys.executable, "-m", "ddpdoctor", "attach", "--hosts=node[01-02]", "--over", over]
    with network(tmp_path, apart=True) as hosts, slurm(hosts, tmp_path) as where:
        command = ["srun", "--nodes=2", "--ntasks=4", *MEETING, "python", JOB, "apart"]
        with started(tmp_path, hosts.on(1, *command), **where) as (job,):
            wait_until(lambda: len([*tmp_path.glob("trained-*")]) == 4)
            (tmp_path / "enough").touch()
            time.sleep(3)
            ours = {**os.environ, **where}
            look = hosts.on(1, *attach)
            done = subprocess.run(look, env=ours, capture_output=True, text=True, timeout=ENDLESS)
            assert job.poll() is None
            scancel = hosts.on(1, "scancel", "1")
            subprocess.run(scancel, env=ours, check=True)
    assert done.returncode == 1, done.stderr
    assert "DDP401 rank-conditional-collective · by evidence, not proven" in done.stdout
    calls = {0: ("node01", "barrier"), 1: ("node01", "all_reduce")}
    calls |= {2: ("node02", "all_reduce"), 3: ("node02", "all_reduce")}
    for rank, (host, call) in calls.items():
        lines = [each for each in done.stdout.splitlines() if f"rank {rank} on {host}" in each]
        assert any(f"waits in {call} " in each for each in lines), done.stdout
