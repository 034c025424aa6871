"""What ends or holds a launch is named once, and what only followed is its consequence."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose import diagnose, prove_deadlock
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detectors import DETECTORS
from ddpdoctor.evidence import (
    MAKING_GROUPS,
    Collective,
    Evidence,
    ExceptionRecord,
    Fate,
    Group,
    Place,
    RankEvidence,
    Stuck,
    Training,
)
from ddpdoctor.evidence.events.backward import Backward
from ddpdoctor.evidence.events.given import Given
from tests.diagnose.data_simulation import LOOP, epoch, loader

TRAIN = Place("/home/user/train.py", 10, "main")
INSIDE = Place("/site-packages/torch/distributed/distributed_c10d.py", 1, "all_reduce")
CLOSED = "[pair.cc:537] Read error [127.0.0.1]:18864: Connection reset by peer"
OVERDUE = "[unbound_buffer.cc:86] Timed out waiting 2000ms for recv operation to complete"


def ranks(count: int = 3) -> list[RankEvidence]:
    group = Group("0", tuple(range(count)), "gloo", 2.0, replace(TRAIN, line=3))
    return [RankEvidence(rank, count, 100 + rank, groups={"0": group}) for rank in range(count)]


def end(rank: RankEvidence, code: int | None = 0, by: int | None = None, at: float = 60.0) -> None:
    rank.fate = Fate(rank.rank, rank.pid, code, by, at)


def error(message: str, *, line: int = 20, kind: str = "RuntimeError", at: float = 50.0):  # type: ignore[no-untyped-def]
    place = replace(TRAIN, line=line)
    return ExceptionRecord(kind, message, (place, INSIDE), at, place)


def call(op: str, seq: int, *, line: int = 10, **more: object) -> Collective:
    return Collective("0", seq, op, 40.0 + seq, replace(TRAIN, line=line), **more)  # type: ignore[arg-type]


def stuck(op: str, seq: int, *, line: int, since: float = 42.0, at_exit: bool = False) -> Stuck:
    waiting = call(op, seq, line=line, at_exit=at_exit)
    place = replace(TRAIN, line=line)
    return Stuck(since, 59.0, (place, INSIDE), place, (waiting,), {"0": seq}, awaited=waiting)


def found(evidence: list[RankEvidence]) -> list[Finding]:
    return diagnose(Evidence(len(evidence), evidence))


def only(evidence: list[RankEvidence]) -> Finding:
    (finding,) = found(evidence)
    return finding


def test_a_rank_that_ended_well_before_its_peers_lost_it_has_left_early() -> None:
    three = ranks()
    end(three[0], at=45.0)
    three[0].collectives.append(call("barrier", 1, line=33))
    for rank in three[1:]:
        rank.exceptions.append(error(CLOSED))
        end(rank, 1)
    finding = only(three)
    assert (finding.code, finding.ranks) == ("DDP410", (0,))
    assert [p.place.line for p in finding.places if p.place] == [33, 20, 20]
    assert len(finding.consequences) == 2


def test_a_fault_in_one_detector_leaves_what_the_others_find(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(case: Case) -> Iterator[Finding]:
        raise StopIteration

    three = ranks()
    end(three[0], at=45.0)
    for rank in three[1:]:
        rank.exceptions.append(error(CLOSED))
        end(rank, 1)
    (before,) = found(three)
    monkeypatch.setattr("ddpdoctor.diagnose.DETECTORS", (fails, *DETECTORS))
    with pytest.raises(StopIteration):
        found(three)
    faults: list[str] = []
    assert diagnose(Evidence(3, three), faults) == [before]
    (told,) = faults
    assert told.startswith("a fault of ours, StopIteration: ")
    assert "test incidents" in told


@pytest.mark.parametrize(("out_of", "certainty"), [("loader", "evidence"), ("forward", "proven")])
def test_what_one_rank_catches_of_a_batch_that_the_others_had_is_named(
    out_of: str, certainty: str
) -> None:
    two = ranks(2)
    two[1].thrown.append(replace(error("mask", kind="KeyError", line=8, at=41.0), out_of=out_of))
    two[1].stuck = stuck("barrier", 4, line=30)
    two[0].stuck = stuck("all_reduce", 4, line=20)
    two[0].forwards, two[1].forwards = 8, 8 - (out_of == "loader")
    finding = only(two)
    assert (finding.code, finding.certainty, finding.ranks) == ("DDP307", certainty, (1,))


def test_what_was_tried_again_is_no_reason_and_a_step_left_out_is_told_before_a_read() -> None:
    def caught(*out_of: str, forwards: int | None) -> Finding:
        two = ranks(2)
        for number, where in enumerate(out_of):
            thrown = error(where, kind="OSError", line=8 + number, at=41.0 + number)
            two[1].thrown.append(replace(thrown, out_of=where))
        two[1].stuck = stuck("barrier", 4, line=30, since=44.0)
        two[0].stuck = stuck("all_reduce", 4, line=20)
        two[0].forwards, two[1].forwards = 8, forwards
        return only(two)

    assert caught("loader", forwards=8).code == caught("loader", forwards=None).code == "DDP400"
    for step in ("forward", "backward"):
        assert caught(step, forwards=9).code == "DDP400"
        assert caught(step, forwards=8).code == caught(step, forwards=None).code == "DDP307"
        finding = caught("loader", step, forwards=8)
        assert finding.place is not None
        assert (finding.code, finding.certainty, finding.place.line) == ("DDP307", "proven", 9)


@pytest.mark.parametrize(
    ("out_of", "joins", "codes"),
    [
        ("backward", 40.0, ["DDP410"]),
        ("DDP", 40.0, ["DDP410"]),
        ("backward", 55.0, []),
        ("collective", 40.0, []),
    ],
)
def test_who_catches_that_a_peer_has_left_and_ends_well_has_lost_it_all_the_same(
    out_of: str, joins: float, codes: list[str]
) -> None:
    two = ranks(2)
    end(two[1], at=45.0)
    end(two[0], at=60.0)
    two[0].thrown.append(replace(error(CLOSED), out_of=out_of))
    two[0].joining, two[0].left = joins, 50.5
    assert [(each.code, each.ranks) for each in found(two)] == [(code, (1,)) for code in codes]


@pytest.mark.parametrize("size", [5, 1])
def test_a_call_of_one_rank_alone_that_met_a_bucket_is_found_when_both_stand_in_buckets(
    size: int,
) -> None:
    two = ranks(2)
    two[1].collectives.append(call("all_reduce", 2, line=33, shapes=((),)))
    for rank, seq in zip(two, (2, 3), strict=True):
        bucket = replace(call("all_reduce", seq), place=None, shapes=((size,),))
        at = stuck("all_reduce", seq, line=30)
        rank.stuck = replace(at, waiting=(bucket,), awaited=None)
    if size == 1:  # it fits: nobody can say that it was not meant
        assert found(two) == []
        return
    finding = only(two)
    assert (finding.code, finding.certainty) == ("DDP400", "proven")
    assert [p.place.line for p in finding.places if p.place] == [33, 30, 30]


def test_peers_of_a_rank_that_raised_are_no_reason_to_look_for_a_deserter() -> None:
    three = ranks()
    end(three[0], at=45.0)
    three[1].exceptions.append(error("bad label", kind="ValueError", at=44.0))
    three[2].exceptions.append(error(CLOSED))
    finding = only(three)
    assert (finding.title, finding.ranks) == ("exception", (1,))


def test_an_exception_explains_the_deadlock_of_those_that_wait_for_the_rank() -> None:
    three = ranks()
    three[1].exceptions.append(error("bad label", kind="ValueError"))
    end(three[1], 1, at=50.0)
    for rank in (three[0], three[2]):
        rank.stuck = stuck("all_reduce", 4, line=30)
    finding = only(three)
    assert (finding.title, finding.ranks) == ("exception", (1,))
    assert finding.consequences == (
        "ranks 0, 2 then waited for ever in all_reduce #4 at train.py:30",
    )


def test_a_barrier_at_exit_that_holds_a_failed_rank_is_one_finding_with_the_exception() -> None:
    three = ranks()
    three[1].exceptions.append(error("bad label", kind="ValueError", line=12))
    three[1].stuck = stuck("barrier", 4, line=5, at_exit=True)
    for rank in (three[0], three[2]):
        rank.stuck = stuck("all_reduce", 4, line=30)
    finding = only(three)
    assert (finding.code, finding.ranks) == ("DDP409", (1,))
    assert [p.place.line for p in finding.places if p.place] == [5, 12, 30]


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_ranks_that_were_asked_to_end_are_nobodys_fault(by: int) -> None:
    three = ranks()
    for rank in three:
        end(rank, None, by)
    assert found(three) == []


def test_ranks_that_the_launcher_kills_after_a_failure_are_its_consequence() -> None:
    three = ranks()
    three[1].exceptions.append(error("bad label", kind="ValueError", at=40.0))
    end(three[1], 1, at=40.5)
    end(three[0], None, signal.SIGTERM, at=41.0)
    end(three[2], None, signal.SIGKILL, at=71.0)
    assert [f.title for f in found(three)] == ["exception"]


def test_who_prints_where_nobody_reads_has_lost_no_peer() -> None:
    three = ranks()
    three[0].exceptions.append(error("[Errno 32] Broken pipe", kind="BrokenPipeError"))
    for rank in three[1:]:
        rank.exceptions.append(error(CLOSED, at=51.0))
    for rank in three:
        end(rank, 1)
    finding = only(three)
    assert (finding.title, finding.ranks) == ("exception", (0,))
    three[2].exceptions.clear()
    end(three[2], None, signal.SIGKILL, at=45.0)
    assert only(three).ranks == (2,), "a pipe to another rank may break so, too"


def test_a_rank_that_was_killed_first_is_the_cause_and_not_what_its_peers_raise() -> None:
    three = ranks()
    end(three[2], None, signal.SIGKILL, at=45.0)
    three[2].stuck = stuck("all_reduce", 4, line=30)
    for rank in three[:2]:
        rank.exceptions.append(error(CLOSED))
    finding = only(three)
    assert (finding.title, finding.ranks) == ("rank-died", (2,))
    assert "SIGKILL" in finding.cause
    assert "who sent it" in finding.cure.text, "the kernel has not said that it was"
    assert finding.place is not None
    assert finding.place.line == 30


def test_of_who_left_it_is_known_through_which_loaders_it_had_not_been() -> None:
    three = ranks()
    for rank in three[1:]:
        rank.exceptions.append(error(CLOSED))
    end(three[0], at=45.0)
    again = loader(epoch(30.0), epoch(40.0, ended=None))
    three[0].loaders = [again, loader(epoch(41.0))]
    (gone,) = (each for each in only(three).places if each.phase == "ended")
    assert gone.unfinished == (LOOP,)
    again.epochs[2].ended = 44.0
    (gone,) = (each for each in only(three).places if each.phase == "ended")
    assert gone.unfinished == ()


def test_an_abort_after_all_work_is_torchs_own_race_and_harmless() -> None:
    three = ranks()
    for rank in three:
        rank.left = 55.0
        end(rank)
    end(three[1], None, signal.SIGABRT)
    finding = only(three)
    assert (finding.code, finding.severity, finding.ranks) == ("DDP419", "info", (1,))


def test_an_abort_while_the_group_is_destroyed_is_that_race_and_one_before_it_is_not() -> None:
    for began_to_leave in (55.0, None):
        three = ranks()
        for rank in three:
            rank.left = 55.0
            end(rank)
        three[1].left, three[1].leaving = None, began_to_leave
        end(three[1], None, signal.SIGABRT)
        finding = only(three)
        assert finding.ranks == (1,)
        assert (finding.code == "DDP419") == (began_to_leave is not None)


@pytest.mark.parametrize(
    ("fell", "after_it_left"), [(signal.SIGABRT, "DDP419"), (signal.SIGSEGV, "DDP400")]
)
def test_who_falls_at_its_end_and_never_destroyed_its_group_is_told_as_that(
    fell: signal.Signals, after_it_left: str
) -> None:
    three = ranks()
    for rank in three:
        rank.exiting = 55.0
        end(rank)
    end(three[1], None, fell)
    finding = only(three)
    assert (finding.code, finding.severity, finding.ranks) == ("DDP411", "warning", (1,))
    assert fell.name in finding.cause
    assert "destroy_process_group" in finding.cure.text
    three[1].left = 54.0
    assert only(three).code == after_it_left


def test_a_rank_that_hung_in_the_teardown_is_told_with_the_line_that_destroys_the_group() -> None:
    three = ranks()
    for rank in three:
        rank.left, rank.left_place = 55.0, TRAIN
        end(rank)
    end(three[2], None, signal.SIGALRM)
    finding = only(three)
    assert (finding.code, finding.severity, finding.ranks) == ("DDP419", "info", (2,))
    assert finding.place == TRAIN


@pytest.mark.parametrize(("wrote", "told"), [(55.0, True), (55.2, False)])
def test_who_falls_silent_as_it_destroys_its_group_hung_in_the_teardown(
    wrote: float, told: bool
) -> None:
    three = ranks()
    for rank in three:
        rank.leaving, rank.left, rank.left_place = 55.0, 55.1, TRAIN
        end(rank)
    three[2].left, three[2].last_event = None, wrote
    end(three[2], None, signal.SIGALRM)
    finding = only(three)
    assert (finding.code == "DDP419", finding.ranks) == (told, (2,))


def test_who_waits_in_the_next_group_for_one_that_hangs_in_the_teardown_is_not_named() -> None:
    three = ranks()
    for rank in three:
        rank.leaving, rank.left, rank.joining, rank.left_place = 55.0, 55.1, 55.2, TRAIN
        rank.last_event = 55.2
        rank.fate = Fate(rank.rank, rank.pid, None, signal.SIGKILL, 60.0, killed_by_us=True)
    three[1].left, three[1].joining, three[1].last_event = None, 1.0, 55.0
    end(three[1], None, signal.SIGALRM)
    finding = only(three)
    assert (finding.code, finding.ranks, finding.place) == ("DDP419", (1,), TRAIN)


@pytest.mark.parametrize(("wrote", "told"), [(55.0, True), (58.0, False), (89.0, False)])
def test_who_is_ended_from_outside_hung_in_the_teardown_only_if_nothing_of_it_ran(
    wrote: float, told: bool
) -> None:
    three = ranks()
    for rank in three:
        rank.left, rank.left_place, rank.last_event = 55.0, TRAIN, 55.0
        end(rank)
    three[2].last_event = wrote
    end(three[2], None, signal.SIGTERM, at=90.0)
    assert [each.code for each in found(three)] == (["DDP419"] if told else [])


@pytest.mark.parametrize(("state", "told"), [("S", True), ("R", False), ("", False)])
def test_who_was_left_in_the_teardown_when_the_job_was_asked_to_end_is_told(
    state: str, told: bool
) -> None:
    three = ranks()
    for rank in three:
        rank.left, rank.left_place, rank.last_event = 55.0, TRAIN, 55.0
        end(rank)
    three[2].fate, three[2].state = None, state
    said = diagnose(Evidence(3, three, asked_to_end=True))
    assert [each.code for each in said] == (["DDP419"] if told else [])


def test_an_alarm_in_the_middle_of_the_work_is_not_called_harmless() -> None:
    three = ranks()
    for rank in three:
        end(rank)
    end(three[2], None, signal.SIGALRM)
    assert only(three).title == "rank-died"


def test_an_abort_in_the_middle_of_the_work_is_not_called_harmless() -> None:
    three = ranks()
    for rank in three:
        end(rank)
    end(three[1], None, signal.SIGABRT)
    assert only(three).title == "rank-died"


@pytest.mark.parametrize("inside", ["DistributedDataParallel._pre_forward", "recv"])
def test_an_abort_is_told_with_the_forward_in_which_others_lost_the_rank(inside: str) -> None:
    three = ranks()
    for rank in three:
        rank.collectives.append(call("all_reduce", 9, line=13))
    end(three[0], None, signal.SIGABRT, at=50.1)
    for rank in three[1:]:
        closed = error(CLOSED, line=38, at=50.0)
        wrapper = Place("/site-packages/torch/nn/parallel/distributed.py", 9, inside)
        rank.exceptions.append(replace(closed, frames=(*closed.frames, wrapper)))
    finding = only(three)
    assert finding.title == "rank-died"
    assert ("forward" in {each.phase for each in finding.places}) == inside.endswith("forward")


@pytest.mark.parametrize(("after", "told"), [(0, True), (1, True), (9, False)])
def test_an_abort_where_the_ranks_took_different_passes_is_a_matter_of_order(
    after: int, told: bool
) -> None:
    """Unless they have made many passes since: they were to take other lines."""
    two = ranks(2)
    for rank, last in zip(two, (98, 73), strict=True):
        lines = [*([82, 98] * 3), 82, last, *[82] * after]
        rank.of(Given).extend(
            Given(line % 2, step, 40.0 + step, (f"{step}",), replace(TRAIN, line=line))
            for step, line in enumerate(lines)
        )
    end(two[1], None, signal.SIGABRT, at=50.1)
    two[0].exceptions.append(error(CLOSED, line=100, at=50.0))
    finding = only(two)
    assert finding.code == ("DDP402" if told else "DDP400")
    if told:
        assert [p.place.line for p in finding.places if p.place] == [98, 73]


@pytest.mark.parametrize("seen", [True, False])
def test_an_abort_in_a_call_that_the_others_did_not_make_is_a_matter_of_order(seen: bool) -> None:
    """Also where nobody saw how it ended, as no doctor had started the job."""
    three = ranks()
    three[0].collectives.append(call("all_reduce", 9, line=13))
    three[0].last_event = three[0].collectives[-1].begun + 0.1
    if seen:
        end(three[0], None, signal.SIGABRT, at=50.1)
    for rank in three[1:]:
        rank.exceptions.append(error(CLOSED, line=38, at=50.0))
    finding = only(three)
    assert (finding.code, finding.ranks) == ("DDP402", (0,))
    assert [p.place.line for p in finding.places if p.place] == [13, 38]


@pytest.mark.parametrize("at", ["in the call of all", "long after its call", "before its call"])
def test_a_rank_that_vanished_where_no_other_call_can_have_met_its_own_has_only_left(
    at: str,
) -> None:
    three = ranks()
    three[0].collectives.append(call("all_reduce", 9, line=13))
    three[0].last_event = three[0].collectives[-1].begun + 0.1
    if at == "long after its call":
        three[0].last_event += 60.0
    if at == "before its call":
        three[0].collectives.pop()
    for rank in three[1:]:
        if at != "long after its call":
            rank.collectives.append(call("all_reduce", 9, line=13))
        rank.exceptions.append(error(CLOSED, line=38, at=50.0))
    assert only(three).code == "DDP400"


@pytest.mark.parametrize("last", [10, 1])
def test_an_abort_after_a_call_that_all_made_is_a_matter_of_the_passes_after_it(last: int) -> None:
    """The last call that Python made was the same on all: it is not what met another."""
    two = ranks(2)
    for rank, after in zip(two, (98, 73), strict=True):
        rank.collectives.append(replace(call("reduce", 9, line=50), begun=50.1 - last / 10))
        way = (replace(TRAIN, line=5), replace(TRAIN, line=after))
        rank.of(Backward).extend((Backward(9, way[:1]), Backward(10, way)))
    end(two[1], None, signal.SIGABRT, at=50.1)
    two[0].exceptions.append(error(CLOSED, line=100, at=50.0))
    finding = only(two)
    assert finding.code == "DDP402"
    assert [p.place.line for p in finding.places if p.place] == [98, 73]


def test_an_abort_is_told_with_the_earlier_call_that_the_others_left_out() -> None:
    """What met another is called by all alike: they were out of step already."""
    two = ranks(2)
    for rank, times in zip(two, (2, 1), strict=True):
        lines = [*([31] * times), *([60] * 5)]
        rank.collectives.extend(call("all_reduce", n, line=at) for n, at in enumerate(lines, 1))
    end(two[0], None, signal.SIGABRT, at=48.0)
    two[1].exceptions.append(error(CLOSED, line=38, at=47.9))
    places = only(two).places
    assert [each.place.line for each in places if each.place] == [31, 60, 38]
    assert places[0].doing == "all_reduce #2, which rank 1 never called"


@pytest.mark.parametrize(
    ("op", "one", "other", "what"),
    [
        ("broadcast", {"root": 0}, {"root": 1}, "roots"),
        ("all_reduce", {"shapes": ((3,),)}, {"shapes": ((4,),)}, "sizes"),
        ("all_gather", {"shapes": ((3,),)}, {"shapes": ((4,),)}, "sizes"),
        ("all_reduce", {"dtype": "float32"}, {"dtype": "float64"}, "dtypes"),
        ("all_reduce", {"reduce_op": "SUM"}, {"reduce_op": "MAX"}, "reduce ops"),
    ],
)
def test_calls_that_do_not_fit_are_named_although_every_rank_ended_well(
    op: str, one: dict[str, object], other: dict[str, object], what: str
) -> None:
    three = ranks()
    for rank in three:
        rank.collectives += [call("barrier", 1), call(op, 2, **(other if rank.rank == 2 else one))]
        end(rank)
    finding = only(three)
    assert (finding.code, finding.ranks) == ("DDP403", (2,))
    assert f"disagree on the {what} of {op} #2" in finding.cause


def test_sizes_that_every_rank_has_sent_from_one_line_are_out_of_step() -> None:
    three = ranks()
    for rank in three:
        rounds = [(4,), (5,), (6,)] * 2
        if rank.rank == 2:
            del rounds[3]
        rank.collectives += [
            call("all_reduce", number, line=20, shapes=(size,))
            for number, size in enumerate(rounds, 1)
        ]
        end(rank)
    finding = only(three)
    assert (finding.code, finding.ranks) == ("DDP403", (2,))
    assert "out of step" in finding.cure.text


@pytest.mark.parametrize(
    ("lines", "before", "told"),
    [
        ((20, 20, 20), 0, "Agree on the sizes first"),
        (
            (20, 20, 31),
            0,
            "meet by their number alone (train.py:20 and train.py:31)",
        ),
        ((20, 20, 31), 1, "Agree on the sizes first"),
    ],
)
def test_the_remedy_for_unlike_sizes_is_for_one_call_or_for_two_that_have_met(
    lines: tuple[int, ...], before: int, told: str
) -> None:
    three = ranks()
    for rank, line in zip(three, lines, strict=True):
        calls = [call("all_reduce", 1 + each, line=line, shapes=((3,),)) for each in range(before)]
        size = 4 if rank.rank == 2 else 3
        rank.collectives += [*calls, call("all_reduce", 1 + before, line=line, shapes=((size,),))]
        end(rank)
    finding = only(three)
    assert finding.code == "DDP403"
    assert told in finding.cure.text


@pytest.mark.parametrize(
    ("op", "one", "other"),
    [
        ("all_reduce", {"shapes": ((3, 1),)}, {"shapes": ((3,),)}),
        ("scatter", {"root": 0, "shapes": ((3,),), "dtype": "float32"}, {"root": 0}),
        ("all_to_all", {"shapes": ((3,),)}, {"shapes": ((5,),)}),
        ("reduce_scatter", {"shapes": ((3,),)}, {"shapes": ((5,),)}),
        ("send", {"peer": 1}, {"peer": 0}),
    ],
)
def test_calls_that_may_differ_are_no_mismatch(
    op: str, one: dict[str, object], other: dict[str, object]
) -> None:
    three = ranks()
    for rank in three:
        rank.collectives.append(call(op, 1, **(other if rank.rank == 2 else one)))
        end(rank)
    assert found(three) == []


def test_nccl_gathers_tensors_of_unequal_sizes() -> None:
    three = ranks()
    for rank in three:
        rank.groups["0"] = replace(rank.groups["0"], backend="cpu:gloo,cuda:nccl")
        rank.collectives.append(call("all_gather", 1, shapes=((3 + rank.rank,),)))
        end(rank)
    assert found(three) == []


def test_other_numbers_after_the_ranks_are_out_of_step_are_not_compared() -> None:
    three = ranks()
    for rank in three:
        skew = 1 if rank.rank == 2 else 0
        ops = ["barrier", "all_reduce", "all_reduce"][skew:]
        rank.collectives += [call(op, n, shapes=((n + skew,),)) for n, op in enumerate(ops, 1)]
        end(rank)
    assert found(three) == []


def made(seq: int, members: tuple[int, ...]) -> Collective:
    return Collective(MAKING_GROUPS, seq, "new_group", 41.0, TRAIN, (members,))


def test_groups_that_only_their_members_make_are_named() -> None:
    four = ranks(4)
    for rank in four:
        rank.collectives.append(made(1, (0, 1) if rank.rank < 2 else (2, 3)))
    finding = only(four)
    assert finding.code == "DDP408"
    assert "ranks 0, 1 of [0, 1]; ranks 2, 3 of [2, 3]" in finding.cause


def test_a_group_that_only_its_members_make_is_a_warning_where_all_ended_well() -> None:
    three = ranks()
    for rank in three:
        rank.collectives += [made(1, (0, 1))] if rank.rank < 2 else []
        end(rank)
    finding = only(three)
    assert (finding.code, finding.severity) == ("DDP408", "warning")
    three[2].collectives.append(made(1, (0, 1)))
    assert found(three) == []


def test_groups_that_every_rank_makes_are_well() -> None:
    four = ranks(4)
    for rank in four:
        rank.collectives += [made(1, (0, 1)), made(2, (2, 3))]
    assert found(four) == []


def test_a_wait_that_outlasts_the_timeout_is_told_with_the_timeout_and_where_it_is_set() -> None:
    three = ranks()
    for rank in three[1:]:
        rank.collectives.append(call("barrier", 1))
        rank.exceptions.append(error(OVERDUE, at=52.0))
    work = replace(TRAIN, line=77)
    three[0].pauses.append(Stuck(43.0, 53.0, (work,), work, (), {"0": 0}))
    three[2].stuck = stuck("barrier", 1, line=30)
    end(three[0], None, by=signal.SIGTERM)
    finding = only(three)
    assert (finding.title, finding.certainty, finding.ranks) == ("timeout", "evidence", (0,))
    assert finding.place == work
    assert "after 2 s, the timeout of the group" in finding.cause
    assert "train.py:3" in finding.cure.text


def late(last_event: float, since: float = 12.0) -> list[RankEvidence]:
    three = ranks()
    for rank in three[1:]:
        rank.stuck = stuck("barrier", 1, line=30, since=since)
        rank.last_event = 59.0
    three[0].last_event = last_event
    three[0].working = Stuck(45.0, 58.0, (TRAIN,), TRAIN, ())
    for rank in three:
        rank.fate = Fate(rank.rank, rank.pid, None, signal.SIGKILL, 60.0, killed_by_us=True)
    return three


def test_a_rank_that_others_waited_for_when_the_job_was_ended_is_evidence_of_a_stall() -> None:
    finding = only(late(last_event=58.8))
    assert (finding.title, finding.severity, finding.ranks) == ("stall", "warning", (0,))
    assert finding.place == TRAIN
    assert "no proof" in finding.cause


def test_a_short_wait_when_the_job_was_ended_is_no_warning() -> None:
    assert only(late(last_event=58.8, since=42.0)).severity == "info"


def living(since: float) -> list[RankEvidence]:
    three = late(last_event=58.8, since=since)
    for rank in three:
        rank.fate = None
    return three


def test_a_long_wait_in_a_job_that_goes_on_is_told_with_who_is_late_and_where() -> None:
    finding = only(living(since=12.0))
    assert (finding.title, finding.certainty, finding.ranks) == ("stall", "evidence", (0,))
    assert finding.cause.startswith("ranks 1, 2 wait for rank 0, computing at train.py:10, for")
    assert [(p.ranks, p.waits_for) for p in finding.places] == [((0,), ()), ((1, 2), (0,))]


def test_a_wait_in_a_job_that_goes_on_is_not_told_before_it_is_long() -> None:
    assert found(living(since=42.0)) == []


def test_a_wait_is_told_sooner_once_the_job_was_asked_to_end() -> None:
    evidence = Evidence(3, living(since=42.0), asked_to_end=True)
    (finding,) = diagnose(evidence)
    assert (finding.title, finding.severity, finding.ranks) == ("stall", "info", (0,))
    assert "had waited" in finding.cause


def test_who_is_no_member_of_the_group_that_waits_is_not_waited_for() -> None:
    four = [*living(since=12.0), *ranks(4)[3:]]
    for rank in four:
        rank.groups["0"] = replace(rank.groups["0"], ranks=(0, 1, 2))
    four[3].working = Stuck(45.0, 58.0, (TRAIN,), TRAIN, ())
    (finding,) = diagnose(Evidence(4, four))
    assert finding.ranks == (0,)


def test_a_call_that_all_have_come_to_is_slow_and_nobody_is_late() -> None:
    three = living(since=12.0)
    three[0].stuck = three[1].stuck
    assert found(three) == []


def test_the_one_that_keeps_those_waiting_who_keep_others_waiting_is_named() -> None:
    three = living(since=12.0)
    for rank in three:
        rank.groups["left"] = Group("left", (0, 1), "gloo", 1800.0, None)
        rank.groups["right"] = Group("right", (1, 2), "gloo", 1800.0, None)
    for rank, group in zip(three[1:], ("left", "right"), strict=True):
        awaited = replace(call("barrier", 1, line=30), group=group)
        rank.stuck = replace(
            stuck("barrier", 1, line=30, since=12.0),
            waiting=(awaited,),
            awaited=awaited,
            issued={group: 1},
        )
    finding = only(three)
    assert finding.ranks == (0,)


@pytest.mark.parametrize("joined", [True, False])
def test_an_interrupt_from_the_keyboard_is_no_failure(joined: bool) -> None:
    three = ranks()
    for rank in three:
        rank.groups = rank.groups if joined else {}
        rank.exceptions.append(error("", kind="KeyboardInterrupt"))
        end(rank, 1)
    assert found(three) == []


def test_a_rank_that_gave_no_sign_of_life_is_said_to_be_held_by_c_code() -> None:
    assert "no sign of life for 12 s" in only(late(last_event=47.0)).places[0].doing


@pytest.mark.parametrize(
    ("state", "held", "cure"),
    [
        ("T", "the process (pid 100) is stopped; last seen here", "kill -CONT 100"),
        ("R", "C code that holds the GIL; last seen here", "Look at"),
        ("D", "waits in the kernel", "Look at"),
        ("", "holds the GIL, or the process is stopped", "Look at"),
    ],
)
def test_a_silent_rank_is_told_with_what_the_kernel_says_of_it_and_the_line_of_its_last_step(
    state: str, held: str, cure: str
) -> None:
    three = late(last_event=47.0)
    three[0].state, three[0].working = state, None
    places = {"step": replace(TRAIN, line=65)}
    three[0].training[0, 0] = Training(0, 0, 4, {"s": 4}, 4, places=places)
    finding = only(three)
    assert held in finding.places[0].doing
    assert cure in finding.cure.text
    assert finding.place == places["step"]
    assert "since it was at train.py:65" in finding.cause


def test_ranks_that_ended_by_themselves_have_not_stalled() -> None:
    three = late(last_event=58.8)
    for rank in three:
        end(rank)
    assert found(three) == []


def test_a_failure_to_join_that_was_swallowed_is_named_with_its_line() -> None:
    two = ranks(2)
    for rank in two:
        rank.groups, rank.joining, rank.joining_place = {}, 10.0, TRAIN
        end(rank)
    finding = only(two)
    assert (finding.code, finding.ranks, finding.place) == ("DDP111", (0, 1), TRAIN)
    assert finding.certainty == "evidence"  # it may have left at once


def test_that_ranks_went_on_alone_is_proven_where_they_have_trained() -> None:
    two = ranks(2)
    for rank in two:
        rank.groups, rank.joining, rank.joining_place, rank.steps = {}, 10.0, TRAIN, 5
        end(rank)
    assert (only(two).code, only(two).certainty) == ("DDP111", "proven")


@pytest.mark.parametrize("cut", [(0,), (0, 1)])
def test_nothing_is_concluded_from_what_a_full_disk_kept_back(cut: tuple[int, ...]) -> None:
    two = ranks(2)
    for rank in two:
        rank.joining, rank.joining_place = 10.0, TRAIN
        end(rank)
    for number in cut:
        two[number].groups, two[number].cut_short = {}, True
    assert found(two) == []


def test_a_deadlock_is_not_proven_by_a_log_that_was_cut_short() -> None:
    three = ranks()
    three[0].stuck = three[1].stuck = stuck("all_reduce", 5, line=31)
    three[2].stuck = stuck("barrier", 5, line=30)
    assert prove_deadlock(Evidence(3, three)) is not None
    three[2].cut_short = True
    assert prove_deadlock(Evidence(3, three)) is None


@pytest.mark.parametrize("wanted", [2, 3])
def test_ranks_that_ask_for_more_than_the_launcher_has_started_are_told(wanted: int) -> None:
    """Also where they were interrupted soon: two and three do not go together."""
    two = ranks(2)
    for rank in two:
        rank.groups, rank.joining, rank.joining_place = {}, 10.0, TRAIN
        rank.wanted, rank.last_event = wanted, 12.0
    findings = diagnose(Evidence(2, two, asked_to_end=True))
    assert [each.code for each in findings] == ["DDP105"] * (wanted - 2)
    assert all("has started 2 processes" in each.cause for each in findings)
    assert diagnose(Evidence(2, two)) == []  # it may be the doctor who does not know better yet


def test_ranks_that_wait_for_one_that_never_started_are_counted() -> None:
    three = ranks()
    for rank in three:
        rank.groups, rank.joining, rank.joining_place = {}, 10.0, TRAIN
        rank.fate = Fate(rank.rank, rank.pid, None, signal.SIGKILL, 60.0, killed_by_us=True)
    three[2].pid, three[2].joining = 0, None
    finding = only(three)
    assert (finding.code, finding.ranks) == ("DDP105", (2,))
    assert "2 of 3 ranks came" in finding.cause
    assert finding.certainty == "evidence"


def all_have_come(*, attempt: int, waited: float, **more: bool) -> Evidence:
    """Two ranks of torchrun in init_process_group, where each waits for the other."""
    two = ranks(2)
    for rank in two:
        rank.groups, rank.joining, rank.joining_place = {}, 10.0 + rank.rank, TRAIN
        rank.wanted, rank.launcher, rank.meeting = 2, "torchrun", "localhost:29500"
        rank.last_event = rank.joining + waited
        rank.stuck = Stuck(rank.joining, rank.last_event, (TRAIN,), TRAIN, ())
    return Evidence(2, two, attempt=attempt, **more)


@pytest.mark.parametrize(
    ("attempt", "waited", "found"),
    [
        (1, 20.0, []),
        (1, 40.0, ["restart-meets-old-addresses"]),
        (0, 40.0, []),
        (0, 400.0, ["all-there-and-not-met"]),
    ],
)
def test_ranks_that_have_all_come_and_do_not_meet_are_told(
    attempt: int, waited: float, found: list[str]
) -> None:
    findings = diagnose(all_have_come(attempt=attempt, waited=waited))
    assert [each.title for each in findings] == found
    assert all(each.certainty == "evidence" and each.place == TRAIN for each in findings)


def test_who_interrupts_a_restart_that_does_not_meet_is_told_of_it_sooner() -> None:
    evidence = all_have_come(attempt=1, waited=20.0, asked_to_end=True)
    (finding,) = diagnose(evidence)
    assert "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1" in finding.cure.text
    evidence.ranks[1].groups = evidence.ranks[0].groups = ranks(2)[0].groups
    assert diagnose(evidence) == [], "they have met"


@pytest.mark.parametrize(
    ("below", "doing"),
    [
        ((), "barrier #5"),
        (("/site-packages/lightning/strategies/ddp.py",), "barrier #5"),
        (("/site-packages/torch/nn/modules/batchnorm.py",), "barrier #5 (forward)"),
    ],
)
def test_what_the_users_own_line_calls_within_a_forward_is_not_the_forwards(
    below: tuple[str, ...], doing: str
) -> None:
    forward = Place("/lib/torch/nn/parallel/distributed.py", 9, "DistributedDataParallel.forward")
    three = ranks()
    for rank in three:
        rank.stuck = stuck("all_reduce", 5, line=31)
    library = tuple(Place(file, 1, "call") for file in below)
    lone = stuck("barrier", 5, line=30)
    stack = (replace(TRAIN, line=3), forward, replace(TRAIN, line=30), *library, INSIDE)
    three[1].stuck = replace(lone, stack=stack)
    assert only(three).places[0].doing == doing


def test_two_parties_of_one_size_in_a_world_of_more_are_undecidable() -> None:
    four = ranks(4)
    for rank in four:
        rank.stuck = stuck(("barrier", "all_reduce")[rank.rank // 2], 5, line=30 + rank.rank // 2)
    finding = only(four)
    assert finding.ranks == ()
    assert "undecidable: 2 against 2" in finding.cause


@pytest.mark.parametrize(
    ("mine", "theirs", "extra", "number"),
    [
        ([11, 12, 99, 13, 14], [11, 12, 13, 14], 99, 3),
        ([25, 25, 25, 25, 32], [25, 25, 25, 32], 25, 4),
        ([25, 32, 25, 32, 25, 32], [25, 32, 25, 32, 32], 25, 5),
    ],
)
def test_an_extra_call_long_before_the_ranks_part_for_good_is_shown_first(
    mine: list[int], theirs: list[int], extra: int, number: int
) -> None:
    three = ranks()
    for rank in three:
        lines = mine if rank.rank == 0 else theirs
        rank.collectives += [call("barrier", n, line=line) for n, line in enumerate(lines, 1)]
    three[0].stuck = stuck("barrier", len(mine), line=mine[-1])
    for rank in three[1:]:
        end(rank, at=45.0)
    finding = only(three)
    assert finding.places[0].place == replace(TRAIN, line=extra)
    assert finding.places[0].ranks == (0,)
    assert finding.places[0].doing.startswith(f"barrier #{number}, ")


@pytest.mark.parametrize(
    ("mine", "theirs", "left_out"),
    [
        ([10, 34, 36] * 3, [10, 36, 34] * 3, []),
        ([10, 36, 34, 10, 36], [10, 34, 36, 10, 20], []),
        ([40, 11, 40, 12], [41, 11, 12], [3]),
    ],
)
def test_what_each_rank_calls_in_an_order_or_at_a_line_of_its_own_is_not_left_out(
    mine: list[int], theirs: list[int], left_out: list[int]
) -> None:
    three = ranks()
    for rank in three:
        lines = theirs if rank.rank == 1 else mine
        rank.collectives += [call("barrier", n, line=line) for n, line in enumerate(lines, 1)]
    for rank in three:
        if rank.rank != 1:
            rank.stuck = stuck("barrier", len(mine) + 1, line=50)
    end(three[1], at=45.0)
    told = [each.doing for each in only(three).places if "never called" in each.doing]
    assert told == [f"barrier #{number}, which rank 1 never called" for number in left_out]


def test_calls_of_one_line_are_told_apart_by_what_led_to_them() -> None:
    """As those of a layer of which each rank has a part: it samples with it, and trains with it."""
    two = ranks(2)
    sampled, trained = (replace(TRAIN, line=line) for line in (57, 77))
    for rank in two:
        ways = [trained, sampled, *[sampled if rank.rank == 1 else trained] * 2, trained]
        rank.collectives += [
            replace(call("all_gather", number, line=19), way=(way,))
            for number, way in enumerate(ways, 1)
        ]
    two[0].stuck = stuck("all_reduce", 6, line=25)
    two[1].stuck = stuck("all_gather", 6, line=19)
    first = only(two).places[0]
    assert (first.ranks, first.doing) == ((1,), "all_gather #3, which rank 0 never called")
    assert first.stack == (sampled,)


def test_one_of_many_thousands_is_found_among_them() -> None:
    many = ranks(3000)
    for rank in many:
        rank.stuck = stuck("barrier" if rank.rank == 7 else "all_reduce", 5, line=30)
    finding = only(many)
    assert finding.ranks == (7,)
    assert len(finding.cause) < 300
