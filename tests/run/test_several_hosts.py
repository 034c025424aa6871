"""A job on two hosts, each under a doctor of its own: network namespaces stand for the hosts."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.run.conftest import HERE, environment, living

_NETWORK = """
set -e
ip link add vA type veth peer name vB
ip addr add 10.7.0.1/24 dev vA
ip link set vA up
ip link set lo up
unshare --net sleep 300 &
other=$!
while [ /proc/$other/ns/net -ef /proc/self/ns/net ]; do sleep 0.05; done
ip link set vB netns $other
on_other() { nsenter --target $other --net "$@"; }
on_other ip addr add 10.7.0.2/24 dev vB
on_other ip link set vB up
on_other ip link set lo up
GLOO_SOCKET_IFNAME=vB on_other python -m ddpdoctor run $(options 1) -- $(job 1) 2> 1.err &
theirs=$!
status=0
GLOO_SOCKET_IFNAME=vA python -m ddpdoctor run $(options 0) -- $(job 0) 2> 0.err || status=$?
wait $theirs || status=$?
kill $other
exit $status
"""
_COMMANDS = f"""
options() {{ echo --run-dir=run-$1 --format=json --output=$1.json; }}
job() {{
    echo torchrun --nnodes=2 --node-rank=$1 --nproc-per-node=1 --master-addr=10.7.0.1 \
        --master-port=29533 {HERE / "two_hosts.py"} $WHAT
}}
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


def both(folder: Path, what: str) -> tuple[int, list[dict]]:
    """The worst exit code, and the reports of the two doctors."""
    done = subprocess.run(
        ["unshare", "--net", "bash", "-c", _COMMANDS + _NETWORK],
        cwd=folder,
        env=environment(folder, {"WHAT": what, "PYTHONPATH": os.fspath(HERE.parent.parent)}),
        capture_output=True,
        timeout=150,
        check=False,
    )
    psutil.wait_procs(living(folder), 10)
    assert living(folder) == []
    return done.returncode, [json.loads((folder / f"{n}.json").read_text()) for n in (0, 1)]


def test_a_job_that_is_well_on_two_hosts_is_not_accused_on_either(tmp_path: Path) -> None:
    code, reports = both(tmp_path, "well")
    assert code == 0
    for here, elsewhere in ((0, 1), (1, 0)):
        assert reports[here]["findings"] == []
        (not_seen,) = reports[here]["not_seen"]
        assert not_seen.startswith(f"1 of 2 ranks wrote nothing here: {elsewhere} ")


def test_a_deadlock_between_hosts_is_told_as_evidence_and_never_as_proof(tmp_path: Path) -> None:
    code, reports = both(tmp_path, "apart")
    assert code == 1
    for report in reports:
        (finding,) = report["findings"]
        assert finding["code"] == "DDP400"
        assert report["ended_by"] == "job"
        assert not any(place["doing"].startswith("was elsewhere") for place in finding["places"])
    (timeout,) = [r["findings"][0] for r in reports if r["findings"][0]["title"] == "timeout"][:1]
    assert timeout["certainty"] == "evidence"
    assert "was not seen from here" in [place["doing"] for place in timeout["places"]]
