"""What doctors tell each other, by hand-made posts: whole, lost, damaged, of strangers."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ddpdoctor.diagnose import diagnose, prove_deadlock
from ddpdoctor.evidence import LOG_NAME, Evidence, LogReader, RankReader
from ddpdoctor.hosts import company, messages, secret
from ddpdoctor.hosts.company import First, Member
from ddpdoctor.hosts.messages import MOST, PROTOCOL, Meeting, opened, sealed
from ddpdoctor.observation import Observation
from ddpdoctor.watch import joining
from tests.postmortem.test_hosts import of_host
from tests.postmortem.test_run_directory import log_of

AHEAD = 5000.0
"""So much the clock of the second host is ahead of that of the first."""


def meeting(run: str = "this-run") -> Meeting:
    found = Meeting.of("node01:29500", 2, run)
    assert found is not None
    return found


class Post:
    """Keeps what is sent, and gives what it was handed."""

    is_full = False

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.inbox: list[bytes] = [b""]
        self.closed = False

    def send(self, message: bytes) -> None:
        self.sent.append(message)

    def taken(self) -> list[bytes]:
        taken, self.inbox = self.inbox, []
        return taken

    def close(self) -> None:
        self.closed = True


class Hosts:
    """Two hosts of one rank each, the first doctor and a member, at one time of day."""

    def __init__(self, folder: Path) -> None:
        self.folders = [folder / "a", folder / "b"]
        for each in self.folders:
            each.mkdir()
        self.write(0, of_host(log_of(0, "barrier", 8), "node01", 0.0))
        self.write(1, of_host(log_of(1, "all_reduce", 5), "node02", AHEAD))
        self.observations = [Observation(each, 2) for each in self.folders]
        self.posts: list[Any] = [Post(), Post()]
        self.first = First(meeting(), self.posts[0], self.observations[0])
        self.member = Member(
            meeting(), self.posts[1], lambda rank: LogReader(self.folders[1], rank)
        )
        self.now = 20.0

    def write(self, rank: int, text: str) -> None:
        """Have the rank write it, in as few bytes as ranks do."""
        with (self.folders[rank] / LOG_NAME.format(rank=rank)).open("a") as log:
            for line in text.splitlines():
                log.write(json.dumps(json.loads(line), separators=(",", ":")) + "\n")

    def beat(self, *ranks: int) -> None:
        for rank in ranks:
            time = self.now + AHEAD * rank
            self.write(rank, json.dumps({"k": "still", "t": time}) + "\n")

    def carry(self, *, lose: int = 0) -> None:
        """Bring what was sent to the other; the first so many to the first doctor are lost."""
        one, other = self.posts
        other.inbox += one.sent
        one.inbox += other.sent[lose:]
        one.sent, other.sent = [], []

    def step(self, seconds: float = 0.25, *, lose: int = 0, member: bool = True) -> Evidence:
        """Some time later; the evidence that the first doctor proves from."""
        self.now += seconds
        self.beat(0, 1)
        for each in self.observations:
            each.poll([])
        if member:
            theirs = self.observations[1].evidence
            self.member.look(theirs, theirs.ranks[1:], self.now + AHEAD)
        self.carry(lose=lose)
        evidence = self.observations[0].evidence
        return self.first.look(evidence, evidence.ranks[:1], self.now)


@pytest.fixture
def hosts(tmp_path: Path) -> Hosts:
    return Hosts(tmp_path)


def test_the_first_doctor_knows_what_the_others_ranks_wrote_on_its_own_clock(hosts: Hosts) -> None:
    for _ in range(8):
        hosts.step()
    here = RankReader(hosts.folders[1], 1, 2)
    here.poll()
    there = hosts.observations[0].evidence.ranks[1]
    assert there.host == "node02"
    assert there.groups == here.evidence.groups
    assert there.stuck is not None
    assert here.evidence.stuck is not None
    assert there.stuck.place == here.evidence.stuck.place
    assert there.stuck.since == pytest.approx(here.evidence.stuck.since - AHEAD, abs=1.0)


def test_a_deadlock_is_proven_by_the_second_round_and_the_member_leaves_it_to_the_first(
    hosts: Hosts,
) -> None:
    proofs = [prove_deadlock(hosts.step()) for _ in range(20)]
    assert proofs[0] is None
    assert proofs[-1] is not None
    assert {each.rank for each in proofs[-1].blocked} == {0, 1}
    assert proofs.index(next(filter(None, proofs))) <= 8  # 2 s
    theirs = hosts.observations[1].evidence
    assert hosts.member.speaks_elsewhere
    assert prove_deadlock(hosts.member.look(theirs, theirs.ranks[1:], hosts.now + AHEAD)) is None


def test_a_rank_that_moves_now_and_then_is_in_no_proof(hosts: Hosts) -> None:
    for number in range(40):
        if number % 3 == 0:
            time = hosts.now + AHEAD
            stuck = json.loads(log_of(1, "all_reduce", 5).splitlines()[2])
            again = {**stuck, "t": time + 0.02, "since": time + 0.01}
            hosts.write(1, json.dumps({"k": "moved", "t": time}) + "\n" + json.dumps(again) + "\n")
        assert prove_deadlock(hosts.step()) is None


def test_what_is_lost_is_told_again_from_the_beginning(hosts: Hosts) -> None:
    hosts.step(lose=1)
    for _ in range(20):
        evidence = hosts.step()
    assert hosts.observations[0].evidence.ranks[1].host == "node02"
    assert prove_deadlock(evidence) is not None
    assert len(hosts.observations[0].evidence.ranks[1].groups) == 1


def test_no_silence_is_told_of_who_was_told_to_end(hosts: Hosts) -> None:
    for _ in range(4):
        hosts.step()
    hosts.first.end("DDP401 something")
    for _ in range(40):
        evidence = hosts.step(member=False)
    assert hosts.first.not_seen() == []
    assert evidence.ranks[1].unheard == 0.0


def test_strangers_are_refused_and_nothing_is_lost(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "_MOST_UNPACKED", 1 << 17)
    hosts.step()
    content = {"v": PROTOCOL, "from": "x", "session": 9, "n": 1, "now": 0.0, "end": "all"}
    stranger = meeting("another-run")
    bomb = sealed(meeting().token, {"v": "0" * (1 << 18)})
    strangers = [b"GET / HTTP/1.1", b"\0" * 40, sealed(stranger.token, content), b"x" * (MOST + 1)]
    hosts.posts[0].inbox += [*strangers, bomb]
    hosts.posts[1].inbox += strangers
    for _ in range(20):
        evidence = hosts.step()
    assert prove_deadlock(evidence) is not None
    assert hosts.first.not_seen() == ["5 messages of strangers were refused"]
    assert hosts.member.told_to_end == ""


@pytest.mark.parametrize(
    "damage",
    [
        {"lines": [[10**9, "{}"]]},
        {"lines": [[-1, "{}"]]},
        {"lines": [[0, '{"k":"moved","t":1.0}']]},
        {"lines": 7},
        {"fates": [{"rank": "none"}]},
        {"fates": [{"rank": 10**9, "pid": 1, "exit_code": 0, "signal": None, "time": 1.0}]},
        {"answer": [1]},
        {"answer": [1, [[0, 12.1]]]},
        {"now": "late"},
        {"n": []},
    ],
)
def test_a_message_that_cannot_be_costs_a_message(hosts: Hosts, damage: dict[str, Any]) -> None:
    hosts.step()
    said = {"v": PROTOCOL, "from": "node03:1:x", "session": 0, "n": 1, "now": 0.0, **damage}
    hosts.posts[0].inbox.append(sealed(meeting().token, said))
    for _ in range(4):
        hosts.step()
    assert hosts.observations[0].evidence.ranks[0].stuck is not None
    assert hosts.observations[0].evidence.ranks[0].fate is None
    assert hosts.observations[0].evidence.ranks[1].host == "node02"


def test_a_doctor_of_another_version_is_told_and_not_listened_to(hosts: Hosts) -> None:
    hosts.step(member=False)
    said = {"v": PROTOCOL + 1, "from": "node02:1:x", "something": "new"}
    hosts.posts[0].inbox.append(sealed(meeting().token, said))
    hosts.step(member=False)
    assert hosts.first.not_seen() == ["node02 has a doctor of another version"]


def test_a_first_doctor_of_another_version_is_told_and_not_listened_to(hosts: Hosts) -> None:
    said = {"v": PROTOCOL + 1, "first": "node01", "end": "all", "something": "new"}
    hosts.posts[1].inbox.append(sealed(meeting().token, said))
    theirs = hosts.observations[1].evidence
    hosts.member.look(theirs, theirs.ranks[1:], hosts.now + AHEAD)
    assert hosts.member.not_seen() == ["node01 has a doctor of another version"]
    assert hosts.member.told_to_end == ""


def test_a_host_that_is_not_heard_of_is_named_once_the_others_have_waited_long(
    hosts: Hosts,
) -> None:
    hosts.step()
    hosts.step()

    def titles() -> list[str]:
        return [f.title for f in diagnose(hosts.observations[0].evidence) if f.title == "host-lost"]

    for _ in range(24):
        hosts.step(member=False)
    assert titles() == []
    for _ in range(8):
        evidence = hosts.step(member=False)
    assert titles() == ["host-lost"]
    assert prove_deadlock(evidence) is None
    hosts.step()
    hosts.step()
    assert titles() == []
    assert hosts.first.not_seen() == [f"nothing was heard of {os.uname().nodename} for 8 s"]


def test_a_host_of_thousands_is_missed_within_10_s_although_each_speaks_more_rarely(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(company, "_BEATS", 1 / 6)  # a sign of life in 6 s, as of 12 000 hosts
    for _ in range(40):
        hosts.step()
    assert hosts.member.speaks_elsewhere
    for _ in range(29):
        hosts.step(member=False)
    assert (hosts.first.lost, hosts.first.not_seen()) == (frozenset(), [])
    for _ in range(11):
        hosts.step(member=False)
    assert hosts.first.lost == {os.uname().nodename}


def test_without_the_first_doctor_the_member_tells_what_it_sees(hosts: Hosts) -> None:
    hosts.step()
    hosts.step()
    assert hosts.member.speaks_elsewhere
    theirs = hosts.observations[1].evidence
    for _ in range(40):
        hosts.now += 0.25
        hosts.member.look(theirs, theirs.ranks[1:], hosts.now + AHEAD)
    assert not hosts.member.speaks_elsewhere
    assert hosts.member.not_seen() == [f"{hosts.member.first} has not told what was found there"]


def test_both_part_when_all_is_told(hosts: Hosts) -> None:
    hosts.step()
    hosts.step()
    assert not hosts.first.has_concluded(hosts.now)
    assert not hosts.member.has_concluded(hosts.now + AHEAD)
    hosts.step()
    assert hosts.first.has_concluded(hosts.now)
    hosts.first.part("DDP401 something")
    hosts.step()
    hosts.step()
    assert hosts.member.has_concluded(hosts.now + AHEAD)
    assert hosts.member.not_seen()[0].endswith("tells it (DDP401 something)")
    assert hosts.posts[0].closed


def test_the_first_does_not_wait_for_the_last_word_of_a_host_that_is_not_heard_of(
    hosts: Hosts,
) -> None:
    """It would go on until the others have given up, and none of them learn the verdict."""
    hosts.step()
    hosts.step()
    assert not hosts.first.has_concluded(hosts.now)
    for _ in range(40):
        hosts.step(member=False)
    assert hosts.first.has_concluded(hosts.now)


def test_others_may_come_until_they_have_had_time_to(hosts: Hosts) -> None:
    """So long the first doctor of a job that has failed waits to hear what its other ranks did."""
    hosts.step(member=False)
    assert hosts.first.may_come
    hosts.step(company._TO_MEET + 1, member=False)
    assert not hosts.first.may_come
    hosts.step()
    hosts.step()
    assert not hosts.first.may_come


def test_two_hosts_that_both_say_they_run_a_rank_are_named_and_the_first_is_believed(
    hosts: Hosts,
) -> None:
    hosts.step()
    hosts.step()
    said = {"v": PROTOCOL, "from": "node03:1:x", "session": 0, "n": 1, "now": 0.0, "done": True}
    lines = [[1, '{"k":"moved","t":1.0}']]
    hosts.posts[0].inbox.append(sealed(meeting().token, {**said, "lines": lines}))
    for _ in range(20):
        evidence = hosts.step()
    assert prove_deadlock(evidence) is not None
    (line,) = hosts.first.not_seen()
    assert line == f"node03 says that it runs rank 1, which runs on {os.uname().nodename}"


def test_a_seal_is_of_its_token_and_of_what_it_seals() -> None:
    token = meeting().token
    message = sealed(token, {"a": 1})
    assert opened(token, message) == {"a": 1}
    assert opened(meeting("another-run").token, message) is None
    assert opened(token, message[:-1] + bytes([message[-1] ^ 1])) is None
    assert opened(token, sealed(token, {"a": "x" * 100})[:-3]) is None


def test_the_token_is_the_same_on_all_hosts_and_another_with_a_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = Meeting.of("node01:29500", 2, "run")
    other = Meeting.of("10.0.0.1:29500", 2, "run")  # as another host calls the first
    assert one is not None
    assert other is not None
    assert (one.token, one.ports) == (other.token, other.ports)
    monkeypatch.setenv("DDPDOCTOR_TOKEN", "secret")
    assert Meeting.of("node01:29500", 2, "run") != one
    in_a_file = Meeting.of("/tmp/rendezvous", 2, "run")
    assert in_a_file is not None
    assert in_a_file.host == ""
    assert Meeting.of("", 2, "run") is None


@pytest.mark.parametrize(("one_store", "same"), [("True", False), ("False", True)])
def test_attempts_are_told_apart_and_a_host_that_came_later_meets_the_others(
    monkeypatch: pytest.MonkeyPatch, one_store: str, same: bool
) -> None:
    """Of torchrun: where it keeps one store, attempts share its port; else each has its own."""
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "this-run")
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", one_store)
    tokens = set()
    for count in "01":
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", count)
        tokens.add(meeting(joining._run()).token)
    assert (len(tokens) == 1) == same


def test_where_hosts_share_the_home_a_key_in_it_is_the_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    without = meeting().token
    assert secret.secret() == ""
    assert [*tmp_path.iterdir()] == []
    monkeypatch.setattr(secret, "is_remote", lambda machine, home: home == tmp_path)
    with ThreadPoolExecutor(8) as doctors:
        (key,) = {each.result() for each in [doctors.submit(secret.secret) for _ in range(8)]}
    assert len(key) == 64
    (file,) = (each for each in tmp_path.rglob("*") if each.is_file())
    assert file.stat().st_mode & 0o077 == 0
    assert meeting().token != without
    monkeypatch.setenv("DDPDOCTOR_TOKEN", "said")
    assert secret.secret() == "said"
    monkeypatch.delenv("DDPDOCTOR_TOKEN")
    file.unlink()
    file.mkdir()
    assert secret.secret() == ""
