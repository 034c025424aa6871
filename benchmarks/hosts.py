"""What a job on many hosts costs the first doctor (python -m benchmarks.hosts --hosts 128).

Hosts are simulated: each has logs of the shape that real ranks write, a training's 1.5 kB a second
of them (a step every 100 ms, a wait now and then), and a real `Member` that tells of them; what
they send goes straight to a real `First`. Told are the bytes that come to the first host in a
second while all is well, the share of a core that they cost, and how long it takes from the last
rank's blocking to the findings on a deadlock that is proven, on this machine, with all of it in one
process.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any, cast

from ddpdoctor.annotate import annotate
from ddpdoctor.diagnose import diagnose, prove_deadlock
from ddpdoctor.diagnose.hosts import located
from ddpdoctor.evidence import LOG_NAME, Evidence, LogReader, RankReader, spans
from ddpdoctor.hosts.company import First, Member
from ddpdoctor.hosts.messages import Meeting
from ddpdoctor.hosts.post import StorePost
from ddpdoctor.observation import Observation

_PLACE = ["/home/u/train.py", 42, "main"]
_WAY = [["/home/u/train.py", 90, "<module>"], ["/home/u/train.py", 71, "fit"], _PLACE]
_TORCH = ["/site-packages/torch/distributed/distributed_c10d.py", 5356, "barrier"]
_WELL = 10
"""Seconds of a job that is well."""
_POLL = 0.2
_LONGEST = 60.0
_WRITERS = 2
_SIZE = 300
"""Bytes of a message, about."""
_OWN = b"99999999"
"""Stands for digits that are other ones on each rank: what is alike packs too well."""
_OWN_TIME = 77777777.5
"""Stands for a time that is another one on each rank."""
_PRIME = 48_271


class _Wire:
    """Stands for a post: keeps what is sent until it is carried over."""

    def __init__(self) -> None:
        self.is_full = False
        self.sent: list[bytes] = []
        self.inbox: list[bytes] = [b""]

    def send(self, message: bytes) -> None:
        """Keep it."""
        self.sent.append(message)

    def taken(self) -> list[bytes]:
        """What was carried here."""
        taken, self.inbox = self.inbox, []
        return taken

    def close(self) -> None:
        """Carry no more."""


class _Log:
    """Stands for the log of a rank: the lines that were not read yet."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def poll(self) -> list[bytes]:
        """What was written since the last call."""
        lines, self.lines = self.lines, []
        return lines

    def close(self) -> None:
        """Read no more."""


class _Host:
    """A host that is not the first: its ranks' logs, and its doctor."""

    def __init__(self, ranks: range, size: int, folder: Path, meeting: Meeting) -> None:
        self.logs = {rank: _Log() for rank in ranks}
        self.readers = [RankReader(folder, rank, size) for rank in ranks]
        self.evidence = Evidence(size, [reader.evidence for reader in self.readers])
        self.wire = _Wire()
        self.told = {rank: list[bytes]() for rank in ranks}
        """What a connection that is new has to be told."""
        self.member = Member(meeting, self.wire, self._open)

    def _open(self, rank: int) -> LogReader:
        self.logs[rank].lines = [*self.told[rank]]
        return cast(LogReader, self.logs[rank])

    def write(self, line: bytes, *, lasts: bool, unread: bool) -> None:
        """Have all ranks write this; what is `unread` their doctor need not look at itself."""
        for reader in self.readers:
            rank = reader.evidence.rank
            own = _own(line, rank)
            if not unread:
                reader.take([own])
            self.logs[rank].lines.append(own)
            if lasts:
                self.told[rank].append(line)


def _own(line: bytes, rank: int) -> bytes:
    """The line with that rank's own numbers, and its own times within the last 0.1 s."""
    own = line.replace(_OWN, b"%08d" % (rank * _PRIME % 10**8))
    if (blank := str(_OWN_TIME).encode()) in own:
        time = json.loads(own)["t"] - rank * _PRIME % 1000 / 10_000
        own = own.replace(blank, b"%.4f" % time)
    return own


class _Simulation:
    def __init__(self, folder: Path, hosts: int, each: int) -> None:
        self._second = 0
        self.size, self.bytes, self.first_cpu, self.now = hosts * each, 0, 0.0, 1000.0
        meeting = Meeting.of("node:29500", self.size, "benchmark")
        assert meeting is not None
        self._folder, self._ours = folder, range(each)
        self.wire = _Wire()
        self.observation = Observation(folder, self.size)
        self.first = First(meeting, self.wire, self.observation)
        self.hosts = [
            _Host(range(each * host, each * (host + 1)), self.size, folder, meeting)
            for host in range(1, hosts)
        ]
        for number, host in enumerate([None, *self.hosts]):
            name = f"node{number:05}"
            start = {"pid": 1, "boot": name, "host": name, "torch": "2", "world_size": self.size}
            self._write(host, "start", lasts=True, **start)
            group = {"name": "0", "ranks": spans(range(self.size)), "backend": "nccl"}
            self._write(host, "group", lasts=True, **group, timeout=600, place=_PLACE)
            self._write(host, "way", lasts=True, number=1, frames=_WAY)

    def _write(
        self,
        to: _Host | None,
        kind: str,
        *,
        lasts: bool = False,
        unread: bool = False,
        **fields: Any,
    ) -> None:
        """An event of each rank of a host; of the first, where there is None."""
        event = {"k": kind, "t": self.now, **fields}
        line = json.dumps(event, separators=(",", ":")).encode()  # as a rank writes it
        if to is not None:
            to.write(line, lasts=lasts, unread=unread)
            return
        for rank in self._ours:
            with (self._folder / LOG_NAME.format(rank=rank)).open("ab") as log:
                log.write(_own(line, rank) + b"\n")

    def train(self) -> None:
        """A second of it: what each rank writes of its steps, losses, data and waits."""
        self._second += 1
        step = 10 * self._second
        call = {"group": "0", "op": "all_reduce", "place": _PLACE, "shapes": [[]], "seq": step}
        rows = [{**call, "dtype": "float32", "step": step, "begun": self.now}]
        drawn = {"batches": step, "steps": step, "graded": True, "rows": 20, "fed": 20}
        drawn |= {"loader": 0, "number": 1, "order": int(_OWN), "ended": False}
        mixed = {"mixed": [_OWN.decode()], "mixed_at": _PLACE}
        stuck = {"stack": [_PLACE], "place": _PLACE, "waiting": [], "awaited": None}
        stuck |= {"issued": {"0": step}, "passes": [[0, 5, step]], "forwards": step}
        at = {"place": _PLACE, "step": step}
        for host in self.hosts:
            self._write(host, "drawn", unread=True, **drawn, **mixed)
            self._write(host, "loss", unread=True, value=int(_OWN), **at)
            self._write(host, "collective", unread=True, rows=rows)
            self._write(host, "stuck", unread=True, since=self.now - 0.2, **stuck)
            self._write(host, "moved", unread=True)
            self._write(host, "file", unread=True, action="stat", path=f"/data/{step}", **at)
            self._write(host, "loss", unread=True, value=int(_OWN), **at)

    def block(self) -> None:
        """All ranks wait from now on; those of the first host elsewhere than all others."""
        for host in (None, *self.hosts):
            op = "barrier" if host is None else "all_reduce"
            call = {"group": "0", "seq": 413, "op": op, "begun": _OWN_TIME, "place": _PLACE}
            stuck = {"stack": [*_WAY, _TORCH], "place": _PLACE, "waiting": [{**call, "way": 1}]}
            stuck |= {"awaited": {**call, "way": 1}, "issued": {"0": 413}, "forwards": 413}
            self._write(host, "stuck", since=_OWN_TIME, **stuck)

    def step(self, kind: str, **fields: Any) -> bool:
        """One poll of all doctors; whether the first one has a proof, and told what it means."""
        said, self.wire.sent = self.wire.sent, []
        self._write(None, kind, **fields)
        for host in self.hosts:
            self._write(host, kind, **fields)
            host.wire.inbox += said
            host.member.look(host.evidence, host.evidence.ranks, self.now)
            self.bytes += sum(map(len, host.wire.sent))
            self.wire.inbox += host.wire.sent
            host.wire.sent = []
        began = time.process_time()
        self.observation.poll([])
        known = self.observation.evidence
        evidence = self.first.look(known, known.ranks[: len(self._ours)], self.now)
        proven = prove_deadlock(evidence) is not None
        if proven:
            assert [each.certainty for each in located(annotate(diagnose(evidence)), evidence)]
        took = time.process_time() - began
        self.first_cpu += took
        self.now += max(_POLL, took)  # the first doctor is as slow as it is
        return proven


def _write(meeting: Meeting, messages: int, go: Any) -> None:
    """A process of its own: the messages of many doctors."""
    from torch.distributed import TCPStore

    store = TCPStore(meeting.host, meeting.ports[0], is_master=False, wait_for_workers=False)
    go.wait()
    for _ in range(messages):
        number = store.add(f"{meeting.drawer}/in", 1)
        store.set(f"{meeting.drawer}/in/{number}", os.urandom(_SIZE))  # type: ignore[arg-type]


def through_the_store(messages: int) -> None:
    """How long one message of each host takes to the first doctor by a real store and courier."""
    meeting = Meeting.of("127.0.0.1:29500", 2, f"benchmark-{os.getpid()}")
    assert meeting is not None
    post = StorePost(meeting, first=True)
    while not post.taken():
        time.sleep(0.05)
    spawn = multiprocessing.get_context("spawn")
    go = spawn.Barrier(_WRITERS + 1)
    args = (meeting, messages // _WRITERS, go)
    writers = [spawn.Process(target=_write, args=args) for _ in range(_WRITERS)]
    for writer in writers:
        writer.start()
    go.wait()
    began, come, written = time.monotonic(), 0, 0.0
    while come < messages // _WRITERS * _WRITERS:
        come += len(post.taken())
        if not written and not any(writer.is_alive() for writer in writers):
            written = time.monotonic() - began
        time.sleep(0.03)
    took = time.monotonic() - began
    post.close()
    print(
        f"{come} messages of {_SIZE} bytes through the store: {took:.1f} s; "
        f"{_WRITERS} clients on the same cores wrote them within {written or took:.1f} s"
    )


def main() -> None:
    """Run it, and print a line for each number."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--ranks", type=int, default=8, help="on each host")
    parser.add_argument("--store", action="store_true", help="only one message of each, for real")
    given = parser.parse_args()
    if given.store:
        through_the_store(given.hosts)
        return
    with tempfile.TemporaryDirectory() as folder:
        job = _Simulation(Path(folder), given.hosts, given.ranks)
        for _ in range(15):
            job.step("alive", waits=0.1, steps=1)
        assert all(rank.pid for rank in job.observation.evidence.ranks)
        print(f"{given.hosts} hosts of {given.ranks} ranks: {job.bytes / 1e6:.2f} MB to begin with")
        job.bytes, job.first_cpu, began = 0, 0.0, job.now
        trained = began
        while job.now - began < _WELL:
            while trained < job.now:
                job.train()
                trained += 1.0
            job.step("alive", waits=0.1, steps=100)
        seconds = job.now - began
        print(
            f"while all is well: {job.bytes / seconds / 1e3:.1f} kB/s, "
            f"{100 * job.first_cpu / seconds:.1f} % of a core of the first doctor"
        )
        job.block()
        job.bytes, began = 0, job.now
        while not job.step("still"):
            assert job.now - began < _LONGEST, "there is no proof"
        print(f"deadlock told {job.now - began:.1f} s after it, by {job.bytes / 1e6:.2f} MB")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"memory of all doctors together: {peak:.0f} MB at most")


if __name__ == "__main__":
    main()
