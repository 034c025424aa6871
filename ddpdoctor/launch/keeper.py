"""The process that owns one world: it starts the ranks, reports their fates, and leaves nothing."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Iterable
from dataclasses import asdict
from multiprocessing.connection import wait

from ddpdoctor.evidence import Fate
from ddpdoctor.launch.channel import Channel
from ddpdoctor.launch.job import Job
from ddpdoctor.launch.processes import Children, adopt_orphans, handles
from ddpdoctor.launch.rank import STACK_SIGNAL, Shared, live, prepared

_BATCH = 16
"""Ranks that are forked before the doctor is asked whether it still wants the rest."""


def keep(channel: Channel, warm: bool) -> None:
    """Read a job from the doctor and see it through, until its end or the doctor's.

    Forks the ranks from this process if it is `warm`, and executes fresh interpreters if not.
    """
    os.setsid()
    adopt_orphans()
    children = Children()
    while not (lines := channel.receive(timeout=None)):
        if channel.ended:
            return
    job = Job.from_json(lines[0])
    channel.send({"kept": os.getpid()})
    living: dict[int, int] = {}
    shared = prepared(job) if warm else None
    try:
        for rank in range(job.nproc):
            if not _is_wanted(channel, living, rank):
                living.clear()  # nobody was told of these, so nobody is told their fates
                break
            living[_start(job, rank, children, shared)] = rank
        else:
            channel.send({"started": list(living)})
    except OSError as error:
        children.kill_all()
        reason = f"rank {len(living)} of {job.nproc} could not be started: {error.strerror}"
        channel.send({"no room": reason})
        return
    while living and not channel.ended:
        wait([channel.fileno(), children.fileno()])
        _answer(channel, living)
        _report(channel, living, children.reap(), killing=False)
    _report(channel, living, children.reap(), killing=False)
    _report(channel, living, children.kill_all().items(), killing=True)
    channel.send({"survivors": children.left()})


def _is_wanted(channel: Channel, living: dict[int, int], rank: int) -> bool:
    """Whether the doctor lives, and once in a batch whether it says so itself.

    A doctor that was killed is seen at the next fork, one that no longer runs at the next batch.
    """
    if rank % _BATCH == 0 and rank > 0:
        channel.send({"born": rank})
        while not _answer(channel, living, timeout=None):
            if channel.ended:
                return False
    return not channel.is_deserted()


def _answer(channel: Channel, living: dict[int, int], timeout: float | None = 0.0) -> bool:
    """Do what the doctor asks; whether it told to go on."""
    told = False
    for line in channel.receive(timeout):
        if "go on" in json.loads(line):
            told = True
        else:
            channel.send({"asked": _ask_for_stacks(living)})
    return told


def _start(job: Job, rank: int, children: Children, shared: Shared | None) -> int:
    keeper = os.getpid()
    if pid := os.fork():
        return pid
    try:
        children.disown()
        if shared is not None:
            live(job, rank, keeper, shared)
        _execute(job, rank, keeper)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _execute(job: Job, rank: int, keeper: int) -> None:
    # Not an argument: with the environment in it, the job may be longer than one is allowed to be.
    request = os.memfd_create("job", 0)
    os.write(request, job.to_json().encode())
    os.lseek(request, 0, os.SEEK_SET)
    module = ["-m", "ddpdoctor.launch.rank"]
    arguments = [str(request), str(rank), str(keeper)]
    os.execv(sys.executable, [sys.executable, "-P", *module, *arguments])


def _ask_for_stacks(living: dict[int, int]) -> list[int]:
    """Have the ranks that can write down their stacks; returns which these are."""
    asked = [pid for pid in living if handles(pid, STACK_SIGNAL)]
    for pid in asked:
        os.kill(pid, STACK_SIGNAL)
    return [living[pid] for pid in asked]


def _report(
    channel: Channel, living: dict[int, int], dead: Iterable[tuple[int, int]], killing: bool
) -> None:
    for pid, status in dead:
        if pid not in living:
            continue  # something that a rank left behind
        code = os.waitstatus_to_exitcode(status)
        fate = Fate(
            rank=living.pop(pid),
            pid=pid,
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            time=time.monotonic(),
            killed_by_us=killing,
        )
        channel.send({"fate": asdict(fate)})
