"""A job on two hosts, each under a doctor of its own: network namespaces stand for the hosts."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from ddpdoctor.postmortem.material import read_hosts
from tests.run.conftest import HERE, environment, living

SOME_MESSAGES = 200
"""Bytes of them; a sign of life is a third of that."""
_HOSTS = """
set -e
hostname node01
printf '127.0.0.1 localhost\\n10.7.0.1 node01\\n10.7.0.2 node02\\n' > hosts
mount --bind hosts /etc/hosts
ip link add vA type veth peer name vB
ip addr add 10.7.0.1/24 dev vA
ip link set vA up
ip link set lo up
unshare --net --uts sleep 300 &
other=$!
while [ /proc/$other/ns/net -ef /proc/self/ns/net ]; do sleep 0.05; done
ip link set vB netns $other
on_other() { nsenter --target $other --net --uts "$@"; }
on_other hostname node02
on_other ip addr add 10.7.0.2/24 dev vB
on_other ip link set vB up
on_other ip link set lo up
doctor() { echo python -m ddpdoctor run --run-dir=run-$1 --format=json --output=$1.json; }
GLOO_SOCKET_IFNAME=vB on_other env $(settings 2) $(doctor 2) -- $(job 2) 2> 2.err &
theirs=$!
GLOO_SOCKET_IFNAME=vA env $(settings 1) $(doctor 1) -- $(job 1) 2> 1.err &
ours=$!
[ -z "$MEANWHILE" ] || eval "$MEANWHILE"
status=0
wait $ours || status=$?
wait $theirs || status=$?
kill $other
exit $status
"""
_TORCHRUN = f"""
settings() {{ echo HOST=$1; }}
job() {{
    echo torchrun --nnodes=2 --nproc-per-node=2 --rdzv-backend=c10d \
        --rdzv-endpoint=10.7.0.1:29533 --rdzv-id=this-run --local-addr=10.7.0.$1 \
        {HERE / "two_hosts.py"} $WHAT
}}
"""
_BY_HAND = f"""
settings() {{
    echo RANK=$(($1 - 1)) LOCAL_RANK=0 WORLD_SIZE=2 MASTER_ADDR=10.7.0.1 MASTER_PORT=29533
}}
job() {{ echo python {HERE / "two_hosts.py"} $WHAT; }}
"""


def can_make_networks() -> bool:
    try:
        made = ["unshare", "--net", "ip", "link", "add", "vA", "type", "veth", "peer", "name", "vB"]
        return subprocess.run(made, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


pytestmark = pytest.mark.skipif(
    not can_make_networks(), reason="needs root and ip: network namespaces stand for the hosts"
)


@contextmanager
def hosts(
    folder: Path, how: str, what: str, meanwhile: str = ""
) -> Iterator[subprocess.Popen[bytes]]:
    """Both hosts, with the job on them; nothing of it survives."""
    ours = {"WHAT": what, "MEANWHILE": meanwhile, "PYTHONPATH": os.fspath(HERE.parent.parent)}
    process = subprocess.Popen(
        ["unshare", "--net", "--uts", "--mount", "bash", "-c", how + _HOSTS],
        cwd=folder,
        env=environment(folder, ours),
    )
    try:
        yield process
    finally:
        psutil.wait_procs(living(folder), 10)
        left = living(folder)
        for each in left:
            each.kill()
        process.wait()
    assert left == []


def report(folder: Path, host: int) -> dict:
    return json.loads((folder / f"{host}.json").read_text())


def test_a_job_that_is_well_on_two_hosts_is_whole_to_the_first_doctor(tmp_path: Path) -> None:
    with hosts(tmp_path, _TORCHRUN, "well") as job:
        wait_until_met(tmp_path)
        (tmp_path / "enough").touch()
        assert job.wait(150) == 0
    reports = [report(tmp_path, host) for host in (1, 2)]
    assert [r["findings"] for r in reports] == [[], []]
    assert [r["not_seen"] for r in reports] == [[], []]
    assert "ddpdoctor" not in (tmp_path / "1.err").read_text() + (tmp_path / "2.err").read_text()
    seen = sorted([rank["host"] for rank in r["attempts"][-1]["ranks"]] for r in reports)
    whole = seen[-1]  # rank 0 is on whichever came first
    assert sorted(whole) == ["node01", "node01", "node02", "node02"]
    assert sorted(seen[0]) == ["", "", *[whole[2]] * 2]


def test_a_deadlock_between_hosts_is_proven_and_told_on_the_first(tmp_path: Path) -> None:
    with hosts(tmp_path, _TORCHRUN, "apart") as job:
        wait_until_met(tmp_path)
        (tmp_path / "enough").touch()
        assert job.wait(150) == 1
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
    (line,) = other["not_seen"]
    assert line.endswith(f"{homes[0]} tells it (DDP401 rank-conditional-collective)")
    after = read_hosts([tmp_path / "run-1", tmp_path / "run-2"])
    (again,) = after.judge()
    assert (again.title, again.certainty, again.ranks) == ("deadlock", "proven", (0,))


def test_without_the_first_doctor_the_job_goes_on_and_the_other_doctor_is_alone(
    tmp_path: Path,
) -> None:
    kill = "while [ ! -e kill ]; do sleep 0.1; done; kill -9 $ours"
    with hosts(tmp_path, _BY_HAND, "well", kill) as job:
        wait_until_met(tmp_path)
        (tmp_path / "kill").touch()
        time.sleep(1)
        assert not (tmp_path / "2.json").exists()
        (tmp_path / "enough").touch()
        assert job.wait(60) == 137  # of the doctor that was killed
    other = report(tmp_path, 2)
    assert (other["exit_code"], other["findings"]) == (0, [])
    assert other["not_seen"] == ["node01 has not told what was found there"]


def test_a_link_that_goes_down_for_good_is_named_and_no_deadlock_is_proven(tmp_path: Path) -> None:
    cut = "while [ ! -e cut ]; do sleep 0.1; done; ip link set vA down"
    with hosts(tmp_path, _BY_HAND, "well", cut) as job:
        wait_until_met(tmp_path)
        (tmp_path / "cut").touch()
        began = time.monotonic()
        while b"host-lost" not in (told := (tmp_path / "1.err").read_bytes()):
            assert time.monotonic() - began < 30
            time.sleep(0.1)
        assert b"nothing is heard of node02, which runs rank 1" in told
        assert b"proven 0" not in told
        assert job.poll() is None
        for process in living(tmp_path):
            process.kill()


def wait_until_met(folder: Path) -> None:
    """Until both couriers have brought their doctors some messages, and these have read them."""
    deadline = time.monotonic() + 90
    while sum(brought(process) > SOME_MESSAGES for process in living(folder)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(2)


def brought(process: psutil.Process) -> int:
    """How many bytes a courier has handed on."""
    try:
        is_courier = "ddpdoctor.hosts.courier" in process.cmdline()
        return process.io_counters().write_chars if is_courier else 0
    except psutil.Error:
        return 0
