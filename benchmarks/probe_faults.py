"""Whether `ddpdoctor probe` names the bad link and the slow rank, each time, and else nobody.

    python -m benchmarks.probe_faults links|ranks|peers|against [--trials 20] [--seed 0]

Needs root, ip and tc. Each trial draws a fault, and each but those of `peers` has a control in
which nothing is wrong.

links   four hosts, network namespaces on one bridge: one sends with 50 to 500 Mbit/s to another, or
        to all others
ranks   three ranks, of which one has 8 to 15 % of a CPU, or shares its own with five busy loops;
        in every other control two busy loops disturb all alike
peers   three ranks, of which one that is drawn is killed or stopped in a phase that is drawn
against pairs of probes of three hosts, the second told to compare itself with the first: a link or
        a host sends with 50 to 500 Mbit/s, or a rank has 8 to 25 % of a CPU, since then; in the
        controls nothing changed, in every other one of them two busy loops disturb both probes
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.ports import free_port

_PROBE = (sys.executable, "-m", "ddpdoctor", "probe", "--format=json")
_BUSY = (sys.executable, "-c", "while True: pass")
_QUOTA = Path("/sys/fs/cgroup/cpu")
_ENDED_WITHIN = 120.0
_SECONDS = 6.0
_BEGUN: list[subprocess.Popen[str]] = []
"""What is to be gone when this process is, whatever ends it."""


def start(
    prefixes: Sequence[Sequence[str]], seconds: float, *arguments: str, **more: str
) -> list[Any]:
    """A rank behind each prefix, as a launcher starts them."""
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "WORLD_SIZE": str(len(prefixes))}
    environ |= {"MASTER_PORT": str(free_port()), "LOCAL_RANK": "0", **more}
    begun = [
        subprocess.Popen(
            [*prefix, *_PROBE, f"--seconds={seconds}", *arguments],
            env={**environ, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, prefix in enumerate(prefixes)
    ]
    _BEGUN.extend(begun)
    return begun


def found(code: str, ranks: Sequence[Any]) -> list[tuple[int, ...]]:
    """The ranks of each finding of that code, as rank 0 tells them."""
    findings = json.loads(report(ranks))["findings"]
    return [tuple(one["ranks"]) for one in findings if one["code"] == code]


def report(ranks: Sequence[Any]) -> str:
    """What rank 0 tells."""
    said = [one.communicate(timeout=300) for one in ranks]
    if not said[0][0].startswith("{"):
        sys.exit("\n".join(error for _, error in said))
    return str(said[0][0])


@contextmanager
def hosts(count: int) -> Iterator[list[str]]:
    """So many network namespaces on one bridge."""
    name = f"pf{os.getpid() % 10000}"
    names = [f"{name}h{number}" for number in range(count)]
    try:
        _do(f"ip link add {name} type bridge", f"ip link set {name} up")
        for number, host in enumerate(names):
            _do(
                f"ip netns add {host}",
                f"ip link add {name}v{number} type veth peer name eth0 netns {host}",
                f"ip link set {name}v{number} master {name} up",
                f"ip -n {host} link set lo up",
                f"ip -n {host} link set eth0 up",
                f"ip -n {host} addr add 10.77.8.{number + 1}/24 dev eth0",
            )
        yield names
    finally:
        for host in names:
            subprocess.run(["ip", "netns", "del", host], stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "link", "del", name], stderr=subprocess.DEVNULL)


def _do(*commands: str) -> None:
    for command in commands:
        subprocess.run(command.split(), check=True)


@contextmanager
def throttled(host: str, to: str, rate: int) -> Iterator[None]:
    """That host sends with so many Mbit/s, to what the address says."""
    at = f"ip netns exec {host} tc"
    _do(
        f"{at} qdisc add dev eth0 root handle 1: htb",
        f"{at} class add dev eth0 parent 1: classid 1:3 htb rate {rate}mbit burst 64k",
        f"{at} filter add dev eth0 parent 1: protocol ip u32 match ip dst {to} flowid 1:3",
    )
    try:
        yield
    finally:
        _do(f"{at} qdisc del dev eth0 root")


def inside(host: str) -> list[str]:
    """What starts a command on that host."""
    named = ["sh", "-c", f'hostname {host}; exec "$@"', "sh"]
    return [*f"ip netns exec {host} unshare --uts".split(), *named]


_WHERE = {"MASTER_ADDR": "10.77.8.1", "GLOO_SOCKET_IFNAME": "eth0"}
_EVERYWHERE = "0.0.0.0/0"


def links(draw: random.Random, trials: int) -> int:
    failed = 0
    with hosts(4) as names:
        prefixes = [inside(host) for host in names]
        for number in range(trials):
            first, second = draw.sample(range(4), 2)
            to_all, rate = draw.random() < 0.3, draw.choice((50, 100, 200, 500))
            to = _EVERYWHERE if to_all else f"10.77.8.{second + 1}"
            with throttled(names[first], to, rate):
                named = found("DDP721", start(prefixes, 3, **_WHERE))
            expected = (first,) if to_all else tuple(sorted((first, second)))
            failed += _told(number, f"{expected} sends {rate} Mbit/s", named, [expected])
            failed += _told(number, "control", found("DDP721", start(prefixes, 3, **_WHERE)), [])
    return failed


@contextmanager
def busy(*prefixes: Sequence[str]) -> Iterator[None]:
    """A busy loop behind each prefix."""
    loops = [subprocess.Popen([*prefix, *_BUSY]) for prefix in prefixes]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextmanager
def little_cpu(percent: int) -> Iterator[list[str]]:
    """What puts a command into a control group that grants so much of a CPU."""
    first = _QUOTA.is_dir()
    group = (_QUOTA if first else _QUOTA.parent) / f"ddpdoctor-faults-{os.getpid()}"
    if not first:
        (group.parent / "cgroup.subtree_control").write_text("+cpu")
    group.mkdir()
    try:
        file, quota = ("cpu.cfs_quota_us", "") if first else ("cpu.max", " 100000")
        (group / file).write_text(f"{percent * 1000}{quota}")
        yield ["sh", "-ec", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
    finally:
        group.rmdir()


def ranks(draw: random.Random, trials: int) -> int:
    failed = 0
    where = {"MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}
    for number in range(trials):
        bad, prefixes = draw.randrange(3), [[], [], []]
        with ExitStack() as stack:
            if draw.random() < 0.5:
                percent = draw.randint(8, 15)
                prefixes[bad] = stack.enter_context(little_cpu(percent))
                what = f"rank {bad} has {percent} % of a CPU"
            else:
                cpus = sorted(os.sched_getaffinity(0))
                own, rest = cpus[-1:], cpus[:-1]
                pins = [["taskset", "-c", ",".join(map(str, one))] for one in (own, rest)]
                prefixes = [pins[0] if rank == bad else pins[1] for rank in range(3)]
                stack.enter_context(busy(*[pins[0]] * 5))
                what = f"rank {bad} shares its CPU with 5 busy loops"
            named = found("DDP722", start(prefixes, 3, **where))
        failed += _told(number, what, named, [(bad,)])
        with busy(*[()] * (2 * (number % 2))):
            named = found("DDP722", start([[]] * 3, 3, **where))
        failed += _told(number, "control" + " on a busy machine" * (number % 2), named, [])
    return failed


def against(draw: random.Random, trials: int) -> int:
    failed = 0
    with hosts(3) as names, tempfile.TemporaryDirectory(prefix="faults-") as folder:
        for number in range(trials):
            old = Path(folder, "old.json")
            prefixes = [inside(host) for host in names]
            first, second = draw.sample(range(3), 2)
            rate, percent = draw.choice((50, 100, 200, 500)), draw.randint(8, 25)
            kind = ("link", "host", "rank")[number % 3]
            old.write_text(report(start(prefixes, _SECONDS, **_WHERE)))
            with ExitStack() as stack:
                if kind == "rank":
                    group = stack.enter_context(little_cpu(percent))
                    # Outside, for there is no control group to be seen within a namespace.
                    prefixes[first] = [*group, *prefixes[first]]
                    what, hit = f"rank {first} has {percent} % of a CPU", {(first,)}
                else:
                    to = _EVERYWHERE if kind == "host" else f"10.77.8.{second + 1}"
                    stack.enter_context(throttled(names[first], to, rate))
                    what = f"{kind} {first}-{second} sends {rate} Mbit/s"
                    others = [rank for rank in range(3) if rank != first]
                    hit = [second] if kind == "link" else others
                    hit = {tuple(sorted((first, rank))) for rank in hit}
                named = found("DDP724", start(prefixes, _SECONDS, f"--against={old}", **_WHERE))
            # Of the collectives, whose finding has no ranks, each may be slower with it.
            named = [one for one in named if one]
            failed += _told(number, what, sorted(named), sorted(hit))

            prefixes = [inside(host) for host in names]
            with busy(*[()] * (2 * (number % 2))):
                old.write_text(report(start(prefixes, _SECONDS, **_WHERE)))
                named = found("DDP724", start(prefixes, _SECONDS, f"--against={old}", **_WHERE))
            failed += _told(number, "control" + " on a busy machine" * (number % 2), named, [])
    return failed


def peers(draw: random.Random, trials: int) -> int:
    from ddpdoctor.probe.progress import STAGES

    failed = 0
    phases = [draw.sample(STAGES[:-1], len(STAGES) - 1) for _ in range(trials)]
    for number, phase in enumerate([one for each in phases for one in each][:trials]):
        bad, how = draw.randrange(3), draw.choice((signal.SIGKILL, signal.SIGSTOP))
        named, took = _probe_with(phase, bad, how)
        what = f"rank {bad} gets {how.name} while {phase} ({took:.1f} s after)"
        failed += _told(number, what, named, [(bad,)])
    return failed


def _probe_with(phase: str, bad: int, how: signal.Signals) -> tuple[list[tuple[int, ...]], float]:
    """Who is named when that happens to the rank in that phase; and how long after."""
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        environ = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": folder}
        command = [*_PROBE, "--nproc=3", "--seconds=20"]
        with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
            _BEGUN.append(process)
            stage = _file_of_stage(folder, bad, phase)
            rank = _pid_of_rank(process.pid, bad)
            time.sleep(random.random() * (0.1 if stage == "joining" else 0.5))
            os.kill(rank, how)
            begun = time.monotonic()
            out, _ = process.communicate(timeout=_ENDED_WITHIN)
        findings = json.loads(out)["findings"]
        return [tuple(one["ranks"]) for one in findings if one["code"] == "DDP723"], (
            time.monotonic() - begun
        )


def _file_of_stage(folder: str, rank: int, phase: str) -> str:
    while True:
        for file in Path(folder).rglob(f"rank-{rank}.stage"):
            if file.read_text().partition("\t")[0] == phase:
                return phase
        time.sleep(0.005)


def _pid_of_rank(parent: int, rank: int) -> int:
    import psutil

    below = psutil.Process(parent).children(recursive=True)
    (found,) = [one.pid for one in below if one.environ().get("RANK") == str(rank)]
    return found


def _told(number: int, what: str, named: Sequence[Any], expected: Sequence[Any]) -> bool:
    wrong = list(named) != list(expected)
    print(f"{number:3} {'WRONG' if wrong else 'right'}: {what}: {named or 'nobody'}", flush=True)
    return wrong


_KINDS: dict[str, Callable[[random.Random, int], int]] = {
    "links": links,
    "ranks": ranks,
    "peers": peers,
    "against": against,
}


def _end_what_runs() -> None:
    for process in _BEGUN:
        if process.poll() is None:
            process.terminate()  # a probe of several ranks ends them itself
    for process in _BEGUN:
        process.wait(_ENDED_WITHIN)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=_KINDS)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # A SystemExit, by which namespaces, control groups and loops go.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with ExitStack() as stack:
        stack.callback(_end_what_runs)
        failed = _KINDS[options.kind](random.Random(options.seed), options.trials)
    print(f"{options.trials} trials of {options.kind}: {failed} wrong")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
