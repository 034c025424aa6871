"""A deadlock is proven exactly when the ranks can never move again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddpdoctor.diagnose import diagnose, prove_deadlock
from ddpdoctor.diagnose.waiting import Blocked, Deadlock, culprits, held_up
from ddpdoctor.evidence import Collective, Evidence, Fate, Place, Stuck
from tests.diagnose.simulation import NOW, Call, Simulation
from tests.thorough import examples

OPS = ["all_reduce", "barrier", "broadcast"]


@st.composite
def correct_programs(draw: st.DrawFn) -> Simulation:
    """Each collective is drawn once and appended to every member: no rank can be left waiting."""
    world_size = draw(st.integers(2, 5))
    everyone = tuple(range(world_size))
    subsets = st.sets(st.sampled_from(everyone), min_size=2).map(lambda s: tuple(sorted(s)))
    groups = {"0": everyone} | {
        str(number): members
        for number, members in enumerate(draw(st.lists(subsets, max_size=3)), 1)
    }
    calls = draw(
        st.lists(st.tuples(st.sampled_from(sorted(groups)), st.sampled_from(OPS)), max_size=12)
    )
    programs: list[list[Call]] = [[] for _ in everyone]
    for group, op in calls:
        for member in groups[group]:
            programs[member].append(Call(group, op))
    return Simulation(groups, programs)


@st.composite
def broken_programs(draw: st.DrawFn) -> Simulation:
    """A correct program of which one rank leaves out, repeats, renames or swaps a call."""
    simulation = draw(correct_programs())
    programs = [list(program) for program in simulation.programs]
    candidates = [rank for rank, program in enumerate(programs) if program]
    if candidates:
        program = programs[draw(st.sampled_from(candidates))]
        at = draw(st.integers(0, len(program) - 1))
        match draw(st.sampled_from(["omit", "repeat", "rename", "swap"])):
            case "omit":
                del program[at]
            case "repeat":
                program.insert(at, program[at])
            case "rename":
                program[at] = replace(program[at], op="reduce")
            case _:
                program[at - 1], program[at] = program[at], program[at - 1]
    return Simulation(simulation.groups, programs)


moves = st.lists(st.integers(0, 4), max_size=30)


@given(correct_programs(), moves, st.sets(st.integers(0, 4)))
def test_a_correct_program_is_never_called_dead_whenever_one_looks(
    simulation: Simulation, choices: list[int], running: set[int]
) -> None:
    simulation.run(choices)
    assert prove_deadlock(simulation.evidence(frozenset(running))) is None


@settings(max_examples=examples(300))
@given(broken_programs())
def test_when_nobody_can_move_any_more_exactly_the_ranks_left_are_dead(
    simulation: Simulation,
) -> None:
    left = simulation.finish()
    deadlock = prove_deadlock(simulation.evidence())
    assert {b.rank for b in deadlock.blocked} == left if deadlock else not left


@settings(max_examples=examples(300))
@given(broken_programs(), moves, st.sets(st.integers(0, 4)))
def test_what_is_called_dead_on_the_way_never_moves_later(
    simulation: Simulation, choices: list[int], running: set[int]
) -> None:
    simulation.run(choices)
    deadlock = prove_deadlock(simulation.evidence(frozenset(running)))
    left = simulation.finish()
    assert deadlock is None or {b.rank for b in deadlock.blocked} <= left


def sharing(evidence: Evidence) -> Evidence:
    """The same, with equal parts of waits being one and the same, as of ranks that wait alike."""
    known: dict[Any, Any] = {}

    def one(part: Any) -> Any:
        return known.setdefault(repr(part), part)

    ranks = []
    for rank in evidence.ranks:
        if (stuck := rank.stuck) is not None:
            parts = (one(stuck.waiting), one(stuck.stack), one(stuck.issued), one(stuck.awaited))
            waiting, stack, issued, awaited = parts
            stuck = replace(stuck, waiting=waiting, stack=stack, issued=issued, awaited=awaited)
        ranks.append(replace(rank, stuck=stuck))
    return replace(evidence, ranks=ranks)


@settings(max_examples=examples(300))
@given(broken_programs(), moves, st.sets(st.integers(0, 4)), st.booleans())
def test_of_ranks_that_wait_alike_it_is_told_as_of_each_of_them(
    simulation: Simulation, choices: list[int], running: set[int], with_calls: bool
) -> None:
    simulation.run(choices)
    found = simulation.evidence(frozenset(running))
    for rank in found.ranks:
        rank.collectives = rank.collectives if with_calls else []
        if rank.stuck is not None:
            calls = tuple(replace(call, begun=0.0) for call in rank.stuck.waiting)
            rank.stuck = replace(rank.stuck, waiting=calls)
    shared = sharing(found)
    assert prove_deadlock(shared) == prove_deadlock(found)
    assert held_up(shared) == held_up(found)


def test_of_ranks_that_wait_alike_each_waits_for_the_other_party_alone() -> None:
    """All call all_reduce with the same number, two of a hundred with another size."""
    everyone = tuple(range(100))
    found = Simulation({"0": everyone}, [[Call("0")]] * 100).evidence()
    parties = [
        (Collective("0", 1, "all_reduce", 0.0, Place("train.py", 9, "step"), ((size,),)),)
        for size in (4, 8)
    ]
    for rank in found.ranks:
        assert rank.stuck
        rank.stuck = replace(rank.stuck, waiting=parties[rank.rank < 2])
    deadlock = prove_deadlock(sharing(found))
    assert deadlock is not None
    assert {each.waits_for for each in deadlock.blocked[:2]} == {everyone[2:]}
    assert {each.waits_for for each in deadlock.blocked[2:]} == {(0, 1)}


def test_who_receives_waits_for_a_message_of_its_own() -> None:
    """Ranks 0 and 1 both receive from rank 2, which has sent to rank 0 alone and is gone."""
    found = Simulation({"0": (0, 1, 2)}, [[Call("0")]] * 3).evidence()
    receives = (Collective("0", 1, "recv", 0.0, Place("train.py", 9, "step"), peer=2),)
    for rank in found.ranks[:2]:
        assert rank.stuck
        rank.stuck = replace(rank.stuck, waiting=receives)
    sender = found.ranks[2]
    sender.collectives = [replace(receives[0], op="send", peer=0)]
    sender.stuck, sender.fate = None, Fate(2, 1, 0, None, NOW - 5)
    deadlock = prove_deadlock(sharing(found))
    assert deadlock is not None
    assert [each.rank for each in deadlock.blocked] == [1]


def two_ranks_apart() -> Simulation:
    return Simulation({"0": (0, 1)}, [[Call("0", "barrier")], [Call("0", "all_reduce")]])


def test_two_ranks_at_different_collectives_wait_for_each_other() -> None:
    deadlock = prove_deadlock(two_ranks_apart().evidence())
    assert deadlock is not None
    assert [(b.rank, b.collective.op, b.waits_for) for b in deadlock.blocked] == [
        (0, "barrier", (1,)),
        (1, "all_reduce", (0,)),
    ]


@pytest.mark.parametrize("op", ["broadcast", "all_reduce"])
@pytest.mark.parametrize(("shapes", "is_dead"), [(((1,),), True), (((6, 8),), False), ((), False)])
def test_a_collective_of_ddps_own_meets_the_jobs_where_both_are_as_large(
    op: str, shapes: tuple[tuple[int, ...], ...], is_dead: bool
) -> None:
    found = Simulation({"0": (0, 1)}, [[Call("0", op)], [Call("0", op)]]).evidence()
    own = Collective("0", 1, op, NOW - 5, shapes=shapes)
    jobs = replace(own, place=Place("train.py", 33, "step"), shapes=((48,),))
    for rank, call in zip(found.ranks, (own, jobs), strict=True):
        assert rank.stuck
        rank.stuck = replace(rank.stuck, waiting=(call,))
    deadlock = prove_deadlock(found)
    assert (deadlock is not None) == is_dead
    if deadlock is not None:
        assert [each.waits_for for each in deadlock.blocked] == [(1,), (0,)]


def test_a_rank_that_still_runs_is_no_part_of_a_deadlock_of_others() -> None:
    found = Simulation({"0": (0, 1, 2)}, [[Call("0")]] * 3).evidence(frozenset({2}))
    for rank, elements in zip(found.ranks, (4, 8), strict=False):
        assert rank.stuck
        call = Collective(
            "0", 1, "all_reduce", NOW - 5, Place("train.py", 9, "step"), ((elements,),)
        )
        rank.stuck = replace(rank.stuck, waiting=(call,))
    deadlock = prove_deadlock(found)
    assert deadlock is not None
    assert [each.waits_for for each in deadlock.blocked] == [(1,), (0,)]


@pytest.mark.parametrize("further", [0, 2])
def test_who_got_further_than_the_parting_is_not_to_blame(further: int) -> None:
    """DDP's broadcast of its buckets: the root sends and goes on, whatever the others call."""
    numbers = {0: 5, 1: 5, 2: 5} | {further: 6}
    calls = {
        rank: Collective("0", number, "barrier" if rank == 1 else "broadcast", 0.0)
        for rank, number in numbers.items()
    }
    # To have got beyond a number is taken for having come to it: of C++ calls no more is known.
    held = 2 - further
    missing = {held: (1,), 1: (held,), further: (held, 1)}
    barrier, forward = (Place("train.py", line, "train") for line in (36, 64))
    stuck = {0: forward, 1: barrier, 2: forward}
    blocked = tuple(
        Blocked(rank, calls[rank], Stuck(0.0, 1.0, (), stuck[rank], ()), missing[rank])
        for rank in calls
    )
    assert culprits(Deadlock(blocked, (), 0.0)) == (1,)


def test_who_got_further_is_of_the_party_that_called_the_same_wherever_it_stands_now() -> None:
    """All barriers are of one line: rank 0 has called one more, and met the others' broadcast."""
    barrier, send = Place("train.py", 36, "wait"), Place("train.py", 12, "send")
    there = {
        0: Collective("0", 2, "barrier", 0.0, barrier),
        1: Collective("0", 2, "broadcast", 0.0, send),
        2: Collective("0", 4, "barrier", 0.0, barrier),
    }
    missing = {0: (1, 2), 1: (0,), 2: (0, 1)}
    blocked = tuple(
        Blocked(rank, call, Stuck(0.0, 1.0, (), call.place, ()), missing[rank])
        for rank, call in there.items()
    )
    deadlock = Deadlock(blocked, (), 0.0)
    ranks = Simulation({"0": (0, 1, 2)}, [[Call("0")]] * 3).evidence().ranks
    for rank in ranks:
        rank.collectives[:] = [there[rank.rank]]
    assert culprits(deadlock, ranks) == (1,)  # of what rank 2 called there nothing is known
    ranks[2].collectives.insert(0, replace(there[1]))
    assert culprits(deadlock, ranks) == (0,)


def test_ranks_that_were_not_seen_waiting_at_one_instant_prove_nothing() -> None:
    evidence = two_ranks_apart().evidence()
    assert evidence.ranks[1].stuck is not None
    evidence.ranks[1].stuck = replace(evidence.ranks[1].stuck, since=NOW + 1, seen=NOW + 2)
    assert prove_deadlock(evidence) is None


def test_a_rank_that_went_on_while_it_was_asked_proves_nothing() -> None:
    evidence = Simulation({"0": (0, 1)}, [[Call("0")], [Call("0")]]).evidence(frozenset({1}))
    asked = evidence.ranks[0].stuck
    assert asked is not None
    evidence.ranks[0].stuck = replace(asked, awaited=replace(asked.waiting[0], seq=2))
    assert prove_deadlock(evidence) is None


def test_a_rank_whose_other_threads_communicate_may_still_bring_the_missing_call() -> None:
    evidence = two_ranks_apart().evidence()
    assert evidence.ranks[1].stuck is not None
    evidence.ranks[1].stuck = replace(evidence.ranks[1].stuck, other_threads_communicate=True)
    assert prove_deadlock(evidence) is None


@pytest.mark.parametrize(
    ("swapped", "seconds", "codes"), [(True, 9.0, ["DDP402"]), (True, 1.0, []), (False, 9.0, [])]
)
def test_calls_of_two_threads_that_met_under_one_number_are_told_if_they_do_not_fit(
    swapped: bool, seconds: float, codes: list[str]
) -> None:
    evidence = two_ranks_apart().evidence()
    mine, snapshot = Place("/home/u/train.py", 9, "step"), Place("/home/u/train.py", 4, "_loop")
    for rank in evidence.ranks:
        step = Collective("0", 23, "all_reduce", 0.0)
        told = Collective("0", 24, "all_gather", 0.0, snapshot)
        if swapped and rank.rank == 1:
            step, told = replace(step, seq=24), replace(told, seq=23)
        assert rank.stuck is not None
        rank.stuck = replace(
            rank.stuck,
            since=NOW - seconds,
            seen=NOW,
            place=mine,
            waiting=(step, told),
            other_threads_communicate=True,
        )
    found = [each for each in diagnose(evidence) if each.title == "threads-cross"]
    assert [each.code for each in found] == codes
    places = [(at.ranks, at.place) for each in found for at in each.places]
    assert places == ([((0,), mine), ((1,), snapshot)] if codes else [])


def test_a_rank_that_idles_in_its_own_code_may_still_come() -> None:
    evidence = two_ranks_apart().evidence()
    assert evidence.ranks[1].stuck is not None
    own = replace(evidence.ranks[1].stuck.stack[0], file="/home/user/train.py")
    evidence.ranks[1].stuck = replace(evidence.ranks[1].stuck, stack=(own,))
    assert prove_deadlock(evidence) is None


def test_a_rank_in_its_data_loader_may_still_come() -> None:
    evidence = two_ranks_apart().evidence()
    assert evidence.ranks[1].stuck is not None
    loader = replace(
        evidence.ranks[1].stuck.stack[0], file="/site-packages/torch/utils/data/dataloader.py"
    )
    evidence.ranks[1].stuck = replace(evidence.ranks[1].stuck, stack=(loader,))
    assert prove_deadlock(evidence) is None


def test_a_rank_that_left_early_is_waited_for_in_vain() -> None:
    simulation = Simulation({"0": (0, 1, 2)}, [[], [Call("0")], [Call("0")]])
    deadlock = prove_deadlock(simulation.evidence())
    assert deadlock is not None
    assert deadlock.gone == (0,)
    assert [b.waits_for for b in deadlock.blocked] == [(0,), (0,)]


def at_its_end(started: bool = True, where: str = "_exit_function") -> Evidence:
    """Rank 0 exits, and waits for a process to end; rank 1 is one that it has `started`, or not."""
    evidence = Simulation({"0": (0, 1)}, [[Call("0")], [Call("0"), Call("0")]]).evidence()
    first, second = evidence.ranks
    assert first.stuck is not None
    assert second.stuck is not None
    multiprocessing = "/usr/lib/python3.13/multiprocessing"
    stack = (
        Place(f"{multiprocessing}/util.py", 357, where),
        Place(f"{multiprocessing}/process.py", 149, "BaseProcess.join"),
    )
    first.exiting = NOW - 4
    first.stuck = replace(first.stuck, stack=stack, waiting=(), issued={"0": 1})
    held = replace(second.stuck.waiting[0], seq=2)
    second.stuck = replace(second.stuck, waiting=(held,), issued={"0": 2})
    second.parent = first.pid if started else 4711
    return evidence


def test_a_rank_that_waits_at_its_end_for_a_rank_that_it_has_started_is_waited_for_in_vain() -> (
    None
):
    evidence = at_its_end()
    deadlock = prove_deadlock(evidence)
    assert deadlock is not None
    assert deadlock.gone == (0,)
    assert [(b.rank, b.waits_for) for b in deadlock.blocked] == [(1, (0,))]
    (finding,) = diagnose(evidence)
    assert (finding.code, finding.ranks) == ("DDP410", (0,))
    assert "is at its end" in finding.cause


@pytest.mark.parametrize(
    "evidence",
    [at_its_end(started=False), at_its_end(where="_run_finalizers")],
    ids=["another's", "elsewhere"],
)
def test_who_waits_at_its_end_for_others_may_still_come(evidence: Evidence) -> None:
    assert prove_deadlock(evidence) is None


def test_a_rank_at_its_end_whose_other_threads_communicate_may_still_come() -> None:
    evidence = at_its_end()
    assert evidence.ranks[0].stuck is not None
    evidence.ranks[0].stuck = replace(evidence.ranks[0].stuck, other_threads_communicate=True)
    assert prove_deadlock(evidence) is None


def test_a_rank_that_left_a_moment_ago_gives_its_peers_time_to_notice() -> None:
    evidence = Simulation({"0": (0, 1)}, [[], [Call("0")]]).evidence()
    evidence.ranks[0].fate = Fate(0, 1000, 0, None, NOW - 0.1)
    assert prove_deadlock(evidence) is None


def test_one_group_may_be_dead_while_another_still_works() -> None:
    groups = {"a": (0, 1), "b": (2, 3)}
    programs = [[Call("a", "barrier")], [Call("a")], [Call("b")], [Call("b")]]
    deadlock = prove_deadlock(Simulation(groups, programs).evidence(frozenset({2, 3})))
    assert deadlock is not None
    assert [b.rank for b in deadlock.blocked] == [0, 1]
