"""What a doctor tells where the first one can take little of each host."""

from __future__ import annotations

import json

import pytest

from ddpdoctor.diagnose import prove_deadlock
from ddpdoctor.evidence import Fate
from ddpdoctor.hosts import company
from ddpdoctor.hosts.outbox import Outbox
from tests.hosts.test_company import AHEAD, Hosts, hosts

__all__ = ["hosts"]


def line(kind: str, **fields: object) -> bytes:
    return json.dumps({"k": kind, "t": 1.0, **fields}, separators=(",", ":")).encode()


def told(outbox: Outbox, now: float = 0.0) -> list[str]:
    lines = [*outbox.batch(1 << 20), *outbox.more(now)]
    return [json.loads(each)["k"] for _, each in lines]


ALL = ["start", "loss", "stuck", "moved", "collective", "file", "exception"]


def test_where_there_is_room_all_is_told_in_its_order_at_once() -> None:
    outbox = Outbox()
    for kind in ALL:
        outbox.put(0, line(kind), 0.0)
    assert told(outbox) == ALL
    assert not outbox.is_behind


def test_where_there_is_little_a_wait_that_ends_at_once_is_not_told_and_state_goes_first() -> None:
    outbox = Outbox(10.0)
    for kind in ALL:
        outbox.put(0, line(kind), 0.0)
    assert told(outbox) == ["start", "collective", "exception"]
    assert told(outbox, 9.0) == ["loss", "file"]


def test_a_wait_that_lasts_is_told_and_its_end_and_the_calls_that_led_to_it_if_asked_for() -> None:
    outbox = Outbox(10.0)
    outbox.put(0, line("collective", rows=[1]), 0.0)
    outbox.put(0, line("stuck"), 0.0)
    outbox.lasting_waits(0.4)
    assert told(outbox) == []
    assert not outbox.is_behind
    outbox.lasting_waits(0.6)
    assert told(outbox) == ["stuck"]
    assert outbox.is_behind
    outbox.tell_calls(0)
    assert told(outbox) == ["collective"]
    assert not outbox.is_behind
    outbox.put(0, line("moved"), 2.0)
    assert told(outbox) == ["moved"]


def test_the_end_of_a_wait_that_was_told_is_told_although_another_has_begun_meanwhile() -> None:
    outbox = Outbox(10.0)
    outbox.put(0, line("stuck"), 0.0)
    outbox.lasting_waits(1.0)
    assert told(outbox) == ["stuck"]
    outbox.put(0, line("working"), 1.1)
    outbox.put(0, line("moved"), 1.2)
    assert told(outbox) == ["moved"]
    outbox.put(0, line("working"), 1.3)
    outbox.put(0, line("moved"), 1.4)
    assert told(outbox) == []


def test_what_there_is_no_room_for_waits_and_so_much_that_there_never_will_be_is_lost() -> None:
    outbox = Outbox(10.0)
    for _ in range(2000):
        outbox.put(0, line("loss", values=["x" * 1000]), 0.0)
    assert outbox.has_lost
    assert [*outbox.more(1000.0)] == []  # of thousands of hosts it would come all at once
    assert 0 < len([*outbox.more(1100.0)]) < 10
    outbox.sent(3000)
    assert [*outbox.more(1200.0)] == []
    assert [*outbox.more(1600.0)] != []
    assert outbox.is_behind


def test_a_deadlock_of_many_hosts_is_proven_and_nothing_is_concluded_from_what_is_not_told(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(company, "_FLOW", 1.0)
    call = {"group": "0", "op": "broadcast", "begun": 1.0, "seq": 1}
    hosts.write(1, line("collective", rows=[call]).decode() + "\n")
    for _ in range(3000):
        hosts.write(1, line("loss", values=["x" * 1000]).decode() + "\n")
    steps = [prove_deadlock(hosts.step()) is not None for _ in range(20)]
    assert steps.index(True) <= 16  # 4 s
    evidence = hosts.observations[0].evidence
    assert evidence.behind
    assert [call.seq for call in evidence.ranks[1].collectives] == [1]
    assert hosts.first.not_seen() == [
        "not all that ranks of 1 of 1 other hosts did: it is more than the first can take, so "
        "nothing is concluded from what they did not do"
    ]
    assert evidence.ranks[1].groups
    assert hosts.now + AHEAD > 0


@pytest.mark.parametrize("ended", [False, True])
def test_what_a_rank_had_called_comes_with_its_end_unless_the_doctor_has_ended_it(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch, ended: bool
) -> None:
    """Of 100 000 ranks it would keep the first doctor from its report."""
    monkeypatch.setattr(company, "_FLOW", 1.0)
    for _ in range(3):
        hosts.step()
    if ended:
        hosts.first.end("DDP401 something")
    hosts.step()
    call = {"group": "0", "op": "broadcast", "begun": 1.0, "seq": 1}
    hosts.write(1, line("collective", rows=[call]).decode() + "\n")
    hosts.observations[1].evidence.ranks[1].fate = Fate(1, 1, None, 9, 1.0)
    for _ in range(6):
        hosts.step()
    assert hosts.first.fates.keys() == {1}
    known = hosts.observations[0].evidence.ranks[1].collectives
    assert len(known) == (0 if ended else 1)
