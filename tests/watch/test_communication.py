"""What real ranks say to each other is written down as it was, and one defect is one finding."""

from __future__ import annotations

import inspect
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from torch.distributed import distributed_c10d

from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose import Deadlock, diagnose
from ddpdoctor.diagnose.detectors import key_never_set, stalled
from ddpdoctor.evidence import MAKING_GROUPS, Evidence
from ddpdoctor.evidence.events.stores import KeyAwaited, KeySet
from ddpdoctor.launch import ForkServer, Job
from ddpdoctor.observation import Observation
from ddpdoctor.watch import collectives

BODIES = Path(__file__).with_name("communication_bodies.py")
PATIENCE = 120.0
WORLD = 3


def line(comment: str) -> int:
    """The line of the bodies that ends with this comment."""
    lines = BODIES.read_text("utf-8").splitlines()
    (number,) = (n for n, text in enumerate(lines, 1) if text.endswith(f"# {comment}"))
    return number


class Watched:
    """A finished launch: its evidence, and the deadlock if one was proven."""

    def __init__(self, server: ForkServer, body: str, nproc: int = WORLD, **kwargs: Any) -> None:
        self.deadlock: Deadlock | None = None
        with tempfile.TemporaryDirectory() as folder:
            job = Job(f"{BODIES}:{body}", nproc, Path(folder), kwargs=kwargs, watch=True)
            observation = Observation(Path(folder), nproc)
            until = time.monotonic() + PATIENCE
            with server.launch(job) as world:
                while not world.ended and self.deadlock is None and time.monotonic() < until:
                    self.deadlock = observation.poll(world.poll())
                    time.sleep(0.01)
                world.kill()
                observation.poll(world.poll())
        self.evidence: Evidence = observation.evidence
        self.findings: list[Finding] = diagnose(self.evidence)
        self.exit_codes = [rank.fate.exit_code for rank in self.evidence.ranks if rank.fate]


def test_what_is_said_between_two_ranks_is_numbered_by_pair_and_not_with_the_rest(
    server: ForkServer,
) -> None:
    watched = Watched(server, "talk_in_pairs")
    assert watched.exit_codes == [0, 0, 0]
    assert watched.findings == []
    for rank in watched.evidence.ranks:
        joint = [(c.op, c.seq) for c in rank.collectives if c.op in ("all_reduce", "barrier")]
        assert joint == [("all_reduce", 1), ("barrier", 2)]
    sent, received, anybody = (
        [(c.op, c.peer, c.tag, c.seq) for c in rank.collectives if c.op in ("send", "recv")]
        for rank in watched.evidence.ranks
    )
    assert sent == [("send", 1, 0, 1), ("send", 1, 7, 1)]
    assert received == [("recv", 0, 0, 1), ("recv", 0, 7, 1), ("send", 2, 0, 1)]
    assert anybody[0][:2] == ("recv", None)


def test_what_is_exchanged_in_single_tensors_is_recorded(server: ForkServer) -> None:
    watched = Watched(server, "exchange_in_single_tensors")
    assert watched.exit_codes == [0, 0, 0]
    for rank in watched.evidence.ranks:
        assert [(c.op, c.seq, c.place and c.place.line) for c in rank.collectives] == [
            ("all_gather", 1, line("gathered")),
            ("reduce_scatter", 2, line("scattered")),
            ("all_to_all", 3, line("exchanged")),
        ]


def test_what_was_detached_from_a_graph_is_known_where_it_is_gathered(server: ForkServer) -> None:
    watched = Watched(server, "gather_what_was_detached", nproc=2)
    assert watched.exit_codes == [0, 0]
    for rank in watched.evidence.ranks:
        assert [c.place and c.place.line for c in rank.collectives if c.graph] == [line("cut off")]
        assert len(rank.collectives) == 3


def test_all_by_which_torch_starts_a_collective_is_listened_to() -> None:
    source = inspect.getsource(distributed_c10d)
    called = set(re.findall(r"(?:\bwork = |\breturn )\w*(?:group|pg)\.(\w+)\(", source))
    assert {"allreduce", "allgather", "barrier", "send"} <= called
    none = {"rank", "size", "get_group_store", "_get_backend", "_end_coalescing", "split_group"}
    none |= {"get_backend", "new_window", "reconfigure", "get_reconfigure_handle"}  # torch 2.14
    none |= {"gather_single"}  # of NCCL alone, torch 2.14: untried
    assert called - none <= {*collectives._OPS, *collectives._BETWEEN_TWO}


def test_two_ranks_that_both_send_first_are_proven_dead(server: ForkServer) -> None:
    watched = Watched(server, "both_send_first", nproc=2)
    assert watched.deadlock is not None
    (finding,) = watched.findings
    assert finding.code == "DDP417"
    assert {p.place.line for p in finding.places if p.place} == {line("the send")}


def test_the_making_of_groups_is_recorded_with_their_members(server: ForkServer) -> None:
    watched = Watched(server, "groups_of_all_and_some")
    assert watched.exit_codes == [0, 0, 0]
    assert watched.findings == []
    for rank in watched.evidence.ranks:
        made = [(c.seq, c.shapes) for c in rank.collectives if c.group == MAKING_GROUPS]
        assert made == [(1, ((0, 1),)), (2, ((1, 2),))]


def test_a_group_that_one_rank_makes_alone_is_named_with_its_line(server: ForkServer) -> None:
    (finding,) = Watched(server, "group_on_one_rank").findings
    assert (finding.code, finding.certainty) == ("DDP408", "proven")
    assert finding.place is not None
    assert finding.place.line == line("the group")


def test_no_collective_is_lost_where_there_are_many(server: ForkServer) -> None:
    watched = Watched(server, "talk_often", nproc=2)
    for rank in watched.evidence.ranks:
        assert [c.seq for c in rank.collectives] == list(range(1, 301))


def test_where_a_rank_slept_or_computed_while_another_waited_is_remembered(
    server: ForkServer,
) -> None:
    watched = Watched(server, "stand_still_and_go_on", nproc=2)
    assert watched.exit_codes == [0, 0]
    assert watched.findings == []
    slow, waiting = watched.evidence.ranks
    # The last one is not over for who reads, if the rank ends before its heart beats again.
    pauses = [*slow.pauses, *filter(None, [slow.working])]
    places = [pause.place.line for pause in pauses if pause.place]
    assert line("the sleep") in places
    assert {line("the loop"), line("the work")} & {*places}
    assert any(pause.waiting for pause in waiting.pauses)


@st.composite
def programs(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """The same calls on every rank; a send on one is a recv on another."""
    ranks: list[list[dict[str, Any]]] = [[] for _ in range(WORLD)]
    for _ in range(draw(st.integers(2, 6))):
        op = draw(st.sampled_from(["all_reduce", "broadcast", "barrier", "send"]))
        size, waited = draw(st.integers(1, 5)), draw(st.booleans())
        root, peer = draw(st.permutations(range(WORLD)))[:2]
        call = {"op": op, "size": size, "root": root, "waited": waited}
        for rank in range(WORLD):
            if op != "send":
                ranks[rank].append(call)
            elif rank in (root, peer):
                there = peer if rank == root else root
                ranks[rank].append({**call, "op": op if rank == root else "recv", "peer": there})
    return ranks


few = settings(
    max_examples=5,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # what fails is small as it is
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@few
@given(program=programs())
def test_a_correct_program_on_real_ranks_ends_without_a_finding(
    server: ForkServer, program: list[list[dict[str, Any]]]
) -> None:
    watched = Watched(server, "perform", programs=program)
    assert watched.exit_codes == [0, 0, 0]
    assert watched.findings == []


BARRIERS = [[{"op": "barrier", "size": 1, "waited": True}] * 3] * WORLD


@few
@given(program=programs(), rank=st.integers(0, WORLD - 1), at=st.integers(0, 5))
@example(program=BARRIERS, rank=0, at=3)
def test_a_barrier_that_one_real_rank_adds_is_one_finding_that_blames_no_other(
    server: ForkServer, program: list[list[dict[str, Any]]], rank: int, at: int
) -> None:
    mine = list(program[rank])
    mine.insert(min(at, len(mine)), {"op": "barrier", "size": 1, "waited": True})
    program = [mine if number == rank else calls for number, calls in enumerate(program)]
    watched = Watched(server, "perform", programs=program)
    (finding,) = [f for f in watched.findings if f.severity == "error"]
    assert set(finding.ranks) <= {rank} or finding.code == "DDP410"
    assert line("barrier") in {p.place.line for p in finding.places if p.place}


@few
@given(program=programs(), rank=st.integers(0, WORLD - 1))
def test_another_root_on_one_real_rank_is_named_with_its_line_and_rank(
    server: ForkServer, program: list[list[dict[str, Any]]], rank: int
) -> None:
    for number, calls in enumerate(program):
        root = 0 if number != rank else 1
        calls.append({"op": "broadcast", "size": 3, "root": root, "waited": True})
    (finding,) = Watched(server, "perform", programs=program).findings
    assert (finding.code, finding.ranks) == ("DDP403", (rank,))
    assert {p.place.line for p in finding.places if p.place} == {line("broadcast")}


def test_a_key_that_no_rank_has_set_is_told_with_who_waits_for_it_and_what_was_set(
    server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_never_set, "_LONG", 1.0)
    monkeypatch.setattr(stalled, "_LONG", 1.0)
    job = Job(f"{BODIES}:wait_for_a_key", 2, tmp_path, kwargs={"name": "raedy"}, watch=True)
    observation = Observation(tmp_path, 2)
    until = time.monotonic() + PATIENCE
    found: list[Finding] = []
    with server.launch(job) as world:
        # It may be seen to stall first, and for that reason alone.
        while "key-never-set" not in [each.title for each in found] and time.monotonic() < until:
            assert observation.poll(world.poll()) is None, "no proof: another process may set it"
            found = diagnose(observation.evidence)
            time.sleep(0.1)
    (finding,) = found
    assert (finding.title, finding.ranks, finding.certainty) == ("key-never-set", (1,), "evidence")
    lines = [each.place.line for each in finding.places if each.place]
    assert lines == [line("the wait"), line("the key")]
    assert finding.may_pass
    assert "'raedy'" in finding.cause


def test_a_key_that_came_is_not_spoken_of(server: ForkServer) -> None:
    watched = Watched(server, "wait_for_a_key", 2, name="ready")
    assert watched.exit_codes == [0, 0]
    assert watched.findings == []
    assert [each.key for each in watched.evidence.ranks[0].of(KeySet)] == ["ready"]
    assert not any(rank.of(KeyAwaited) for rank in watched.evidence.ranks)
