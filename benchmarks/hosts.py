"""What a job on many hosts costs the first doctor (python -m benchmarks.hosts --hosts 128).

Hosts are simulated: each has a log that one rank of a real shape would write, and a real `Member`
that tells of it; what they send goes straight to a real `First`. Told are the bytes that come to
the first host in a second while all is well, the share of a core that they cost, and how long it
takes from the last rank's blocking to the proof of a deadlock, on this machine, with all of it in
one process.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any, cast

from ddpdoctor.diagnose import prove_deadlock
from ddpdoctor.evidence import LOG_NAME, LogReader
from ddpdoctor.hosts.company import First, Member
from ddpdoctor.hosts.messages import Meeting
from ddpdoctor.hosts.post import Post
from ddpdoctor.observation import Observation

_PLACE = ["/home/u/train.py", 42, "main"]
_TORCH = ["/site-packages/torch/distributed/distributed_c10d.py", 5356, "barrier"]
_WELL = 10
"""Seconds of a job that is well."""
_POLL = 0.2
_LONGEST = 60.0


class _Wire:
    """Stands for a post: keeps what is sent until it is carried over."""

    is_full = False

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.inbox: list[bytes] = [b""]

    def send(self, message: bytes) -> None:
        """Keep it."""
        self.sent.append(message)

    def taken(self) -> list[bytes]:
        """What was carried here."""
        taken, self.inbox = self.inbox, []
        return taken


class _Simulation:
    def __init__(self, folder: Path, hosts: int, each: int) -> None:
        self.size, self.each, self.bytes, self.first_cpu = hosts * each, each, 0, 0.0
        meeting = Meeting.of("node:29500", self.size, 0, "benchmark")
        assert meeting is not None
        self.folders = [folder / f"{host}" for host in range(hosts)]
        for each_folder in self.folders:
            each_folder.mkdir()
        self.now = 1000.0
        for rank in range(self.size):
            self._begin(rank)
        self.wires = [_Wire() for _ in self.folders]
        self.ours = Observation(self.folders[0], self.size)
        self.first = First(meeting, cast(Post, self.wires[0]), self.ours)
        self.members = [
            (self._member(meeting, host), _Local(self.folders[host], host, each, self.size), wire)
            for host, wire in enumerate(self.wires)
            if host
        ]

    def _member(self, meeting: Meeting, host: int) -> Member:
        folder = self.folders[host]
        return Member(meeting, cast(Post, self.wires[host]), lambda rank: LogReader(folder, rank))

    def write(self, rank: int, kind: str, **fields: Any) -> None:
        """Append an event to the log of a rank."""
        path = self.folders[rank // self.each] / LOG_NAME.format(rank=rank)
        with path.open("a") as log:
            log.write(json.dumps({"k": kind, "t": self.now, **fields}) + "\n")

    def _begin(self, rank: int) -> None:
        host = f"node{rank // self.each:05}"
        self.write(
            rank, "start", pid=rank + 1, boot=host, host=host, torch="2", world_size=self.size
        )
        everybody = list(range(self.size))
        self.write(
            rank, "group", name="0", ranks=everybody, backend="nccl", timeout=600, place=_PLACE
        )

    def block(self, rank: int) -> None:
        """The rank waits from now on; the first one elsewhere than all others."""
        op = "barrier" if rank == 0 else "all_reduce"
        call = {"group": "0", "seq": 413, "op": op, "begun": self.now, "place": _PLACE}
        stuck = {"stack": [_PLACE, _TORCH], "place": _PLACE, "waiting": [call]}
        self.write(rank, "stuck", since=self.now, issued={"0": 413}, **stuck)

    def step(self, kind: str, **fields: Any) -> bool:
        """One poll of all doctors; whether the first one has a proof."""
        for rank in range(self.size):
            self.write(rank, kind, **fields)
        said, self.wires[0].sent = self.wires[0].sent, []
        for member, local, wire in self.members:
            wire.inbox += said
            evidence = local.observation.evidence
            local.observation.poll([])
            member.look(evidence, [evidence.ranks[rank] for rank in local.ranks], self.now)
            self.bytes += sum(map(len, wire.sent))
            self.wires[0].inbox += wire.sent
            wire.sent = []
        began = time.process_time()
        self.ours.poll([])
        evidence = self.first.look(
            self.ours.evidence, self.ours.evidence.ranks[: self.each], self.now
        )
        proven = prove_deadlock(evidence) is not None
        took = time.process_time() - began
        self.first_cpu += took
        self.now += max(_POLL, took)  # the first doctor is as slow as it is
        return proven


class _Local:
    """What the doctor of one host knows."""

    def __init__(self, folder: Path, host: int, each: int, size: int) -> None:
        self.ranks = range(host * each, (host + 1) * each)
        self.observation = Observation(folder, size)
        self.observation.told = {*range(size)} - {*self.ranks}  # not to look for their logs


def main() -> None:
    """Run it, and print a line for each number."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--ranks", type=int, default=8, help="on each host")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        job = _Simulation(Path(folder), given.hosts, given.ranks)
        for _ in range(15):
            job.step("alive", waits=0.1, steps=1)
        print(f"{given.hosts} hosts of {given.ranks} ranks: {job.bytes / 1e6:.2f} MB to begin with")
        job.bytes, job.first_cpu, began = 0, 0.0, job.now
        while job.now - began < _WELL:
            job.step("alive", waits=0.1, steps=100)
        seconds = job.now - began
        print(
            f"while all is well: {job.bytes / seconds / 1e3:.1f} kB/s, "
            f"{100 * job.first_cpu / seconds:.1f} % of a core of the first doctor"
        )
        for rank in range(job.size):
            job.block(rank)
        job.bytes, began = 0, job.now
        while not job.step("still"):
            assert job.now - began < _LONGEST, "there is no proof"
        print(f"deadlock proven {job.now - began:.1f} s after it, by {job.bytes / 1e6:.2f} MB")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"memory of all doctors together: {peak:.0f} MB at most")


if __name__ == "__main__":
    main()
