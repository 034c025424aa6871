"""What the rounds prove, on simulated hosts: any clocks, any delays, losses and reorderings."""

from __future__ import annotations

from collections.abc import Mapping, Set
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ddpdoctor.evidence import RankEvidence, Stuck
from ddpdoctor.hosts.rounds import PATIENCE, PAUSE, Rounds, answer, later

TICK = 0.05
ROUNDING = 1e-6
FOREVER = 1e9
ROUNDS = 3
"""So many rounds after the last rank has begun to wait, all are in the cut."""


class Host:
    """A host with a clock of its own, whose ranks wait now and then, and in the end for ever."""

    def __init__(self, random: Random, ranks: list[int], *, hangs_at: float) -> None:
        self.ahead = random.uniform(-1e5, 1e5)
        self.waits = {rank: intervals(random, hangs_at) for rank in ranks}
        self.asked = (0, 0.0)
        self.answered = 0
        self.beat = random.uniform(0.05, 0.3)
        fainted = random.uniform(0, hangs_at)
        self.faint = fainted, min(hangs_at, fainted + random.uniform(0, 4))

    def ranks(self, now: float) -> list[RankEvidence]:
        """As their log shows them: hearts beat, but for a while, and see whether they wait."""
        seen = now - now % self.beat
        if self.faint[0] < seen < self.faint[1]:
            seen = self.faint[0]
        return [self.evidence(rank, seen) for rank in self.waits]

    def evidence(self, rank: int, seen: float) -> RankEvidence:
        known = RankEvidence(rank, len(self.waits))
        for begun, ended in self.waits[rank]:
            if begun <= seen < ended:
                known.stuck = Stuck(begun + self.ahead, seen + self.ahead, (), None, ())
        return known


def intervals(random: Random, hangs_at: float) -> list[tuple[float, float]]:
    found, time = [], 0.0
    while (time := time + random.expovariate(1.5)) < hangs_at:
        found.append((time, time := time + random.expovariate(0.8)))
    return [(a, min(b, hangs_at)) for a, b in found if a < hangs_at] + [
        (hangs_at + random.uniform(0, 0.5), FOREVER)
    ]


class Network:
    """Delivers what it does not lose, some of it twice, in any order."""

    def __init__(self, random: Random, loss: float, delay: float) -> None:
        self.random, self.loss, self.delay = random, loss, delay
        self.on_the_way = list[tuple[float, str, object]]()

    def send(self, to: str, message: object, now: float, *, calm: bool) -> None:
        if not calm and self.random.random() < self.loss:
            return
        for _ in range(1 if calm else self.random.choice((1, 1, 2))):
            delay = self.random.uniform(0, 0.2) if calm else self.random.expovariate(1 / self.delay)
            self.on_the_way.append((now + delay, to, message))

    def delivered(self, now: float) -> list[tuple[str, object]]:
        here = [each for each in self.on_the_way if each[0] <= now]
        self.on_the_way = [each for each in self.on_the_way if each[0] > now]
        self.random.shuffle(here)
        return [(to, message) for _, to, message in here]


def go_on(rounds: Rounds, hosts: Set[str], now: float, told: Mapping[int, float]) -> int | None:
    rounds.close(hosts, now)
    return rounds.ask(now, dict(told)) if rounds.is_due(now) else None


def waited(host: Host, rank: int, begun: float, ended: float) -> bool:
    return any(a <= begun + ROUNDING and ended <= b + ROUNDING for a, b in host.waits[rank])


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 1 << 32),
    st.integers(2, 5),
    st.integers(1, 3),
    st.floats(0, 0.9),
    st.floats(0.001, 3),
)
def test_who_is_in_a_cut_waited_at_its_instant_and_who_waits_for_ever_gets_into_one(
    seed: int, number: int, each: int, loss: float, delay: float
) -> None:
    random = Random(seed)
    hangs_at = random.uniform(3.0, 12.0)
    hosts = {
        str(n): Host(random, list(range(n * each, (n + 1) * each)), hangs_at=hangs_at)
        for n in range(number)
    }
    owner = {rank: host for host in hosts.values() for rank in host.waits}
    first, rounds, network = random.uniform(-1e5, 1e5), Rounds(), Network(random, loss, delay)
    calm_from = hangs_at + 0.5
    longest = ROUNDS * (PATIENCE + PAUSE) + 1
    now, cut = 0.0, rounds.cut
    told: dict[int, float] = {}
    while now < calm_from + longest and len(cut.since) < len(owner):
        now += TICK
        calm = now >= calm_from
        for to, message in network.delivered(now):
            if to == "first":
                name, answered, waits = message  # type: ignore[misc]
                rounds.hear(name, answered, waits)
                told |= waits
            else:
                hosts[to].asked = later(hosts[to].asked, int(str(message)), now + hosts[to].ahead)
        for name, host in hosts.items():
            question, asked = host.asked
            if question > host.answered:
                waits = answer(host.ranks(now), asked, now + host.ahead)
                if waits is not None:
                    host.answered = question
                    network.send("first", (name, question, waits), now, calm=calm)
        question = go_on(rounds, hosts.keys(), now + first, told)
        if question is not None:
            for name in hosts:
                network.send(name, question, now, calm=calm)
        if rounds.cut is not cut:
            cut = rounds.cut
            instant = cut.time - first
            for rank, since in cut.since.items():
                host = owner[rank]
                assert waited(host, rank, since - host.ahead, instant)
                assert since - host.ahead <= instant + ROUNDING
    assert len(cut.since) == len(owner), "all wait, and it was not seen"


def test_a_host_that_does_not_answer_leaves_out_its_own_ranks_alone() -> None:
    rounds = Rounds()
    now, cuts = 100.0, []
    for _ in range(200):
        now += 0.05
        if (asked := go_on(rounds, {"here", "mute"}, now, {0: 1.0, 1: 1.0})) is not None:
            rounds.hear("here", asked, {0: 1.0})
            cuts.append(rounds.cut)
    assert len(cuts) > 2
    assert cuts[-1].since == {0: 1.0}


def test_a_rank_that_has_moved_since_it_was_told_of_is_in_no_cut() -> None:
    rounds, now = Rounds(), 100.0
    for began in (1.0, 2.0, 3.0):
        now += 1
        asked = go_on(rounds, {"here"}, now, {0: began - 1, 1: 0.5})
        assert asked is not None
        rounds.hear("here", asked, {0: began, 1: 0.5})
        go_on(rounds, {"here"}, now + 0.01, {})
    assert rounds.cut.since == {1: 0.5}


def test_answers_to_a_doctor_that_takes_seconds_for_a_look_are_waited_for() -> None:
    """Of thousands of hosts: else all would be late each time, and nothing ever be proven."""
    rounds, now, asked = Rounds(), 100.0, None
    for _ in range(6):
        now += 2 * PATIENCE
        if asked is not None:
            rounds.hear("here", asked, {0: 1.0})
            rounds.hear("there", asked, {1: 1.0})
        asked = go_on(rounds, {"here", "there"}, now, {0: 1.0, 1: 1.0}) or asked
        now += 2 * PATIENCE
        asked = go_on(rounds, {"here", "there"}, now, {0: 1.0, 1: 1.0}) or asked
    assert rounds.cut.since == {0: 1.0, 1: 1.0}
