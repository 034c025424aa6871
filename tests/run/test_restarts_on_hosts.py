"""torchrun starts the ranks again with other hosts than before: attempts, and a verdict of each."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.network import ADDRESS, Network, can_make_networks, network
from tests.patience import ENDLESS
from tests.run.conftest import living
from tests.run.test_several_hosts import (
    JOB,
    PORT,
    has_brought,
    report,
    started,
    under_doctor,
    wait_until,
)

HOMES = {"node01", "node02", "node03"}
TO_BE_MISSED = 10.0
"""Seconds in which a host that is gone must be named."""
pytestmark = pytest.mark.skipif(
    not can_make_networks(), reason="needs root and ip: network namespaces stand for the hosts"
)
# torch 2.13's own: where attempts share a store, who came later never learns where to meet
ALONE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def torchrun(host: int, nodes: str) -> list[str]:
    rdzv = ["--rdzv-backend=c10d", f"--rdzv-endpoint=10.7.0.1:{PORT}", "--rdzv-id=this-run"]
    quick = "--rdzv-conf=keep_alive_interval=1,last_call_timeout=3"
    mine = [f"--local-addr={ADDRESS.format(host=host)}", "--max-restarts=3", f"--nnodes={nodes}"]
    return ["torchrun", *rdzv, quick, *mine, "--nproc-per-node=1", JOB, "apart"]


def on(hosts: Network, host: int, nodes: str) -> list[str]:
    return hosts.on(host, *under_doctor(host, *torchrun(host, nodes)))


def trained(folder: Path, ranks: int) -> None:
    """Wait until so many ranks have trained since the last call."""
    wait_until(lambda: len([*folder.glob("trained-*")]) == ranks)
    for each in folder.glob("trained-*"):
        each.unlink()


def crash(hosts: Network, host: int, folder: Path) -> None:
    """All at once, as a host does."""
    hosts.link(host, up=False)
    for process in living(folder):
        if hosts.has(host, process):
            process.kill()


def homes(said: dict) -> list[list[str]]:
    """Of each attempt, where its ranks ran."""
    return [[rank["host"] for rank in attempt["ranks"]] for attempt in said["attempts"]]


def told(said: dict) -> list[tuple[str, str, str]]:
    return [(each["code"], each["title"], each["certainty"]) for each in said["findings"]]


@pytest.mark.thorough
def test_a_spare_host_takes_the_place_of_one_that_vanishes(tmp_path: Path) -> None:
    """The host is named while the job still waits; the next attempt has a verdict of its own."""
    folder = tmp_path
    with network(folder, size=3) as hosts:
        pair = (on(hosts, host, "2:2") for host in (1, 2))
        with started(folder, *pair, **ALONE) as (first, _):
            trained(folder, 2)
            wait_until(lambda: sum(map(has_brought, living(folder))) == 2)
            with started(folder, on(hosts, 3, "2:2"), first=3, **ALONE) as (spare,):
                time.sleep(5)  # it waits at the rendezvous
                crash(hosts, 2, folder)
                began = time.monotonic()
                wait_until(lambda: b"heard of node02, which runs rank 1," in errors(folder))
                assert time.monotonic() - began < TO_BE_MISSED
                trained(folder, 2)
                wait_until(lambda: sum(map(has_brought, living(folder))) == 2)
                (folder / "enough").touch()
                assert [job.wait(ENDLESS) for job in (first, spare)] == [1, 1]
    one, other = report(folder, 1), report(folder, 3)
    assert homes(one) == [["node01", "node02"], ["node01", "node03"]]
    assert told(one) == [
        ("DDP401", "rank-conditional-collective", "proven"),
        ("DDP400", "host-lost", "evidence"),
    ]
    (line,) = one["not_seen"]
    assert line.startswith("nothing was heard of node02 for ")
    assert told(other) == []
    (line,) = other["not_seen"]
    assert line.endswith("node01 tells it (DDP401 rank-conditional-collective)")


@pytest.mark.thorough
def test_a_host_that_comes_late_is_of_the_next_attempt_and_of_its_verdict(tmp_path: Path) -> None:
    folder = tmp_path
    with network(folder, size=3) as hosts:
        pair = (on(hosts, host, "2:3") for host in (1, 2))
        with started(folder, *pair, **ALONE) as early:
            trained(folder, 2)
            with started(folder, on(hosts, 3, "2:3"), first=3, **ALONE) as late:
                trained(folder, 3)
                time.sleep(8)
                (folder / "enough").touch()
                assert [job.wait(ENDLESS) for job in (*early, *late)] == [1, 1, 1]
    reports = [report(folder, host) for host in (1, 2, 3)]
    verdicts = [[f for f in each["findings"] if f["severity"] == "error"] for each in reports]
    ((verdict,), *rest) = sorted(verdicts, key=len, reverse=True)
    assert rest == [[], []]
    assert (verdict["code"], verdict["certainty"]) == ("DDP401", "proven")
    assert {host for place in verdict["places"] for host in place["hosts"]} == HOMES
    first = reports[verdicts.index([verdict])]
    assert list(map(len, homes(first))) == [2, 3]


def errors(folder: Path) -> bytes:
    return (folder / "1.err").read_bytes()
