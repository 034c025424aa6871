"""Real doctors over simulated hosts: any clocks, and messages late, lost, doubled, out of order."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ddpdoctor.diagnose import prove_deadlock
from ddpdoctor.evidence import LOG_NAME, Fate, LogReader
from ddpdoctor.hosts import company
from ddpdoctor.hosts.company import First, Member
from ddpdoctor.hosts.messages import Meeting
from ddpdoctor.hosts.rounds import PATIENCE, PAUSE
from ddpdoctor.observation import Observation
from tests.hosts.test_company import Post
from tests.hosts.test_rounds import FOREVER
from tests.thorough import examples

TICK = 0.1
BEAT = 0.2
ROUNDS = 5
"""So many after the last rank has begun to wait for ever, once messages come, it is proven."""
PLACE = ["/home/u/train.py", 8, "main"]
TORCH = ["/site-packages/torch/distributed/distributed_c10d.py", 5356, "call"]


class Network:
    """Loses, doubles, delays and mixes up; once it is `calm` it is as TCP: late, and in order."""

    def __init__(self, random: Random, loss: float, delay: float) -> None:
        self.random, self.loss, self.delay = random, loss, delay
        self.on_the_way = list[tuple[float, int, bytes]]()

    def send(self, to: int, message: bytes, now: float, *, calm: bool) -> None:
        if calm:
            self.on_the_way.append((now + 2 * TICK, to, message))
        elif self.random.random() >= self.loss:
            for _ in range(self.random.choice((1, 1, 2))):
                due = now + self.random.expovariate(1 / self.delay)
                self.on_the_way.append((due, to, message))

    def delivered(self, now: float) -> list[tuple[float, int, bytes]]:
        here = sorted((each for each in self.on_the_way if each[0] <= now), key=lambda m: m[0])
        self.on_the_way = [each for each in self.on_the_way if each[0] > now]
        return here


class Host:
    """A host with a clock of its own, and its doctor."""

    def __init__(self, random: Random, folder: Path, name: str, lives: dict[int, Life]) -> None:
        folder.mkdir()
        self.folder, self.name, self.lives = folder, name, lives
        self.ahead = random.uniform(10, 1e5)
        self.post: Any = Post()
        self.size = 0
        self.waits: dict[int, float] = {}
        self.gone: dict[int, Fate] = {}
        self.beaten = 0.0

    def begin(self, size: int, now: float) -> None:
        self.size = size
        for rank in self.lives:
            start = {"pid": 999_000_000 + rank, "boot": self.name, "host": self.name}
            self.write(rank, "start", now, **start, torch="2", world_size=size)
            group = {"name": "0", "ranks": [*range(size)], "backend": "gloo", "timeout": 1800}
            self.write(rank, "group", now, **group, place=PLACE)
        self.observation = Observation(self.folder, size)

    def write(self, rank: int, kind: str, now: float, **fields: Any) -> None:
        line = json.dumps({"k": kind, "t": now + self.ahead, **fields}, separators=(",", ":"))
        with (self.folder / LOG_NAME.format(rank=rank)).open("a") as log:
            log.write(line + "\n")

    def live(self, now: float) -> None:
        """What ranks write by now, and how they end."""
        beats = now - self.beaten >= BEAT
        self.beaten = now if beats else self.beaten
        for rank, life in self.lives.items():
            began = life.waits_since(now)
            if rank in self.gone:
                continue
            if now >= life.ends:
                at = life.ends + self.ahead
                self.gone[rank] = Fate(rank, 999_000_000 + rank, 0, None, at)
            elif began != self.waits.get(rank):
                if rank in self.waits:
                    self.write(rank, "moved", now)
                    del self.waits[rank]
                if began is not None:
                    self.waits[rank] = began
                    self.write(rank, "stuck", now, **self.stuck(rank, began))
            elif beats:
                self.write(rank, "still" if rank in self.waits else "alive", now, waits=0.0)
        told = getattr(self.doctor, "fates", {}).values()
        self.observation.poll([*self.gone.values(), *told])

    def stuck(self, rank: int, began: float) -> dict[str, Any]:
        since = began + self.ahead
        call = {"group": "0", "seq": 1, "op": "all_reduce" if rank else "barrier", "begun": since}
        waiting = [{**call, "place": PLACE}]
        at = {"since": since, "stack": [PLACE, TORCH], "place": PLACE}
        return {**at, "waiting": waiting, "issued": {"0": 1}}

    def look(self, now: float) -> Any:
        known = self.observation.evidence
        mine = [known.ranks[rank] for rank in self.lives]
        return self.doctor.look(known, mine, now + self.ahead)

    doctor: Any


class Life:
    """When a rank waits, and when it ends: it may do either for ever."""

    def __init__(self, random: Random, hangs_at: float, *, leaves: bool) -> None:
        self.waits = waits(random, hangs_at)
        self.ends = FOREVER
        if leaves:
            *self.waits, (self.ends, _) = self.waits

    def waits_since(self, now: float) -> float | None:
        return next((a for a, b in self.waits if a <= now < b), None)

    def wait(self, began: float) -> tuple[float, float]:
        """The one that began then."""
        return min(self.waits, key=lambda each: abs(each[0] - began))


def waits(random: Random, hangs_at: float) -> list[tuple[float, float]]:
    """Short ones, seldom at one time with those of others, and one for ever."""
    found, time = [], 0.0
    while (time := time + random.expovariate(0.5)) < hangs_at:
        ended = time + 0.3 + random.expovariate(1.5)
        found.append((time, min(ended, hangs_at)))
        time = ended
    return [*found, (hangs_at + random.uniform(0, 0.5), FOREVER)]


def waited_at_once(hosts: list[Host], lives: dict[int, Life], proof: Any) -> bool:
    """Whether the waits that are meant overlap, and those had ended meanwhile that had to."""
    owner = {rank: host for host in hosts for rank in host.lives}
    known = hosts[0].observation
    meant = []
    for each in proof.blocked:
        stuck, home = known.evidence.ranks[each.rank].stuck, owner[each.rank]
        if stuck is None:
            return False  # it is known to have moved
        since = stuck.since - known.ahead(each.rank)
        meant.append(lives[each.rank].wait(since - home.ahead))
    # Who waits for a rank that has gone gets a while to notice.
    begun = max([a for a, _ in meant] + [lives[rank].ends + PAUSE for rank in proof.gone])
    return begun < min(b for _, b in meant)


@settings(max_examples=examples(80), deadline=None, phases=(Phase.reuse, Phase.generate))
@given(
    st.integers(0, 1 << 32),
    st.integers(2, 3),
    st.integers(1, 2),
    st.floats(0, 0.5),
    st.floats(0.001, 1.0),
    st.sampled_from([200_000.0, 1.0]),
    st.booleans(),
)
def test_no_deadlock_is_proven_that_never_was_and_one_that_is_for_ever_soon_is(
    seed: int, number: int, each: int, loss: float, delay: float, flow: float, leaves: bool
) -> None:
    random, size = Random(seed), number * each
    hangs_at = random.uniform(3.0, 8.0)
    leaver = random.randrange(1, size) if leaves else None
    lives = {rank: Life(random, hangs_at, leaves=rank == leaver) for rank in range(size)}
    network = Network(random, loss, delay)
    found = Meeting.of("node01:29500", size, "run")
    assert found is not None
    before, company._FLOW = company._FLOW, flow
    try:
        with tempfile.TemporaryDirectory() as name:
            hosts = []
            for n in range(number):
                mine = {rank: lives[rank] for rank in range(n * each, (n + 1) * each)}
                hosts.append(Host(random, Path(name, str(n)), f"node{n}", mine))
                hosts[n].begin(size, 0.0)
            for n, host in enumerate(hosts):
                host.doctor = (
                    Member(found, host.post, lambda rank, at=host.folder: LogReader(at, rank))
                    if n
                    else First(found, host.post, host.observation)
                )
            judge(hosts, lives, network, hangs_at)
    finally:
        company._FLOW = before


def judge(hosts: list[Host], lives: dict[int, Life], network: Network, hangs_at: float) -> None:
    first, *others = hosts
    calm_from = hangs_at + 1.5
    longest = calm_from + ROUNDS * (PATIENCE + PAUSE) + 5.0
    now, judged = 0.0, None
    while now < longest:
        now += TICK
        for _, to, message in network.delivered(now):
            hosts[to].post.inbox.append(message)
        for host in hosts:
            host.live(now)
            evidence = host.look(now)
            # Of one cut it is the same again, and these ranks may move: they wait for nobody.
            if host is first and evidence is not judged and (proof := prove_deadlock(evidence)):
                judged = evidence
                assert waited_at_once(hosts, lives, proof)
                if now > calm_from:
                    return
            for message in host.post.sent:
                for to in others if host is first else [first]:
                    network.send(hosts.index(to), message, now, calm=now >= calm_from)
            host.post.sent = []
    raise AssertionError("all wait for ever, and it was not proven")
