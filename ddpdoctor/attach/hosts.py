"""The same looks on several hosts, each taken by an `attach` of its own there.

They are reached by the user's own ssh, srun or kubectl: nothing listens on any host for this.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

from ddpdoctor.attach.processes import FoundJob, RankProcess
from ddpdoctor.attach.session import Look, NothingFound, Seen, conclude
from ddpdoctor.attach.stacks import Sample
from ddpdoctor.evidence import DAMAGED, Place

_PATIENCE = 90.0
"""Seconds for one host to answer."""
_AT_ONCE = 64
_MOST = 1 << 26
_RANGE = r"\d+(?:-\d+)?"
_HOSTS = re.compile(rf"([^,\[\]]+)(?:\[({_RANGE}(?:,{_RANGE})*)\])?([^,\[\]]*)(?:,|$)", re.ASCII)


def attach_on(hosts: str, over: str) -> Seen:
    """Look at the ranks of all these hosts. Raises NothingFound."""
    names = hosts_in(hosts)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = [*pool.map(lambda name: _ask(name, over), names)]
    looks = [each for each in answers if isinstance(each, Look)]
    silent = tuple(each for each in answers if isinstance(each, str))
    if (seen := conclude(looks)) is not None:
        return Seen(seen.attempts, seen.findings, (*silent, *seen.not_seen))
    nothing = [f"none of {len(looks)} hosts runs a rank"] if looks else []
    raise NothingFound("; ".join((*nothing, *silent)))


def hosts_in(hosts: str) -> list[str]:
    """The names in a list as Slurm writes it: "login,gpu[07-09,12]". Raises NothingFound."""
    found = []
    if not hosts or _HOSTS.sub("", hosts):
        raise NothingFound(f"--hosts {hosts!r} is no list of hosts, as node01,gpu[07-09] is")
    for head, ranges, tail in _HOSTS.findall(hosts):
        for each in ranges.split(",") if ranges else ():
            low, _, high = each.partition("-")
            for number in range(int(low), int(high or low) + 1):
                found.append(f"{head}{number:0{len(low)}}{tail}")
        if not ranges:
            found.append(head + tail)
    return list(dict.fromkeys(found))


def told(look: Look) -> str:
    """A look in words that `_ask` understands."""
    return json.dumps(asdict(look))


def _ask(host: str, over: str) -> Look | str:
    """What that host's `attach` has seen; in words why there is nothing."""
    way = [word.replace("{host}", host) for word in shlex.split(over)]
    command = [*way, sys.executable, "-m", "ddpdoctor", "attach", "--tell"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{host} gave no answer: {error}"
    errors = done.stderr.decode("utf-8", "replace").strip().splitlines()
    try:
        return _look(host, json.loads(done.stdout[:_MOST]))
    except DAMAGED:
        why = errors[-1] if errors else f"exit status {done.returncode}"
        return f"{host} gave no answer: {why}"


def _look(host: str, said: dict[str, Any]) -> Look:
    """Raises what is in DAMAGED."""
    jobs = tuple(
        FoundJob(
            str(job["name"]),
            int(job["world_size"]),
            tuple(RankProcess(int(r["pid"]), int(r["rank"]), str(r["name"])) for r in job["ranks"]),
            bool(job["counted"]),
        )
        for job in said["jobs"]
    )
    first, second = (
        {int(pid): _sample(each) for pid, each in samples.items()}
        for samples in (said["first"], said["second"])
    )
    if missing := {rank.pid for job in jobs for rank in job.ranks} - (first.keys() & second.keys()):
        raise KeyError(missing)
    hidden, pause = int(said["hidden"]), float(said["pause"])
    return Look(host, jobs, hidden, bool(said["has_spy"]), pause, first, second)


def _sample(said: dict[str, Any]) -> Sample:
    frames = tuple(
        Place(str(each["file"]), int(each["line"]), str(each["function"]))
        for each in said["frames"]
    )
    return Sample(frames, int(said["ticks"]), str(said["why"]))
