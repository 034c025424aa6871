"""Random programs with at most one defect: exactly that finding, or none."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose import diagnose, prove_deadlock
from tests.diagnose.programs import Call, Defect, Machine, Program, programs, spoilt_programs
from tests.thorough import examples


def lines(finding: Finding) -> set[int]:
    return {each.place.line for each in finding.places if each.place is not None}


@settings(max_examples=examples(120))
@given(programs())
def test_a_correct_program_ends_and_gives_no_finding(program: Program) -> None:
    machine = program.run()
    assert all(rank.ended for rank in machine.ranks)
    assert diagnose(machine.evidence()) == []


@settings(max_examples=examples(200))
@given(programs(), st.lists(st.integers(0, 4), max_size=60))
def test_a_correct_program_is_never_called_dead_whenever_one_looks(
    program: Program, turns: list[int]
) -> None:
    assert prove_deadlock(program.run(turns=turns).evidence()) is None


@settings(max_examples=examples(200))
@given(spoilt_programs())
def test_when_nobody_can_move_exactly_those_that_wait_are_proven_dead(
    spoilt: tuple[Program, Defect],
) -> None:
    program, defect = spoilt
    machine = program.run(defect)
    deadlock = prove_deadlock(machine.evidence())
    dead = {each.rank for each in deadlock.blocked} if deadlock is not None else set()
    assert dead == {number for number, rank in enumerate(machine.ranks) if not rank.ended}


@settings(max_examples=examples(200))
@given(spoilt_programs())
def test_one_defect_gives_one_finding_or_none(spoilt: tuple[Program, Defect]) -> None:
    program, defect = spoilt
    machine = program.run(defect)
    findings = diagnose(machine.evidence())
    hangs = not all(rank.ended for rank in machine.ranks)
    assert len(findings) <= 1
    assert bool(findings) or not hangs


@settings(max_examples=examples(120))
@given(spoilt_programs().filter(lambda spoilt: spoilt[1].kind in ("root", "shape")))
def test_another_root_or_size_is_named_with_its_line_and_rank(
    spoilt: tuple[Program, Defect],
) -> None:
    program, defect = spoilt
    (finding,) = diagnose(program.run(defect).evidence())
    assert (finding.code, finding.certainty) == ("DDP403", "proven")
    assert lines(finding) == {defect.line}
    group = next(call.group for call in program.calls if call.line == defect.line)
    alone = len(program.groups[group]) > 2
    assert finding.ranks == ((defect.rank,) if alone else ())


@settings(max_examples=examples(120))
@given(spoilt_programs())
def test_whoever_is_blamed_for_a_hang_on_the_spot_is_the_one_who_did_it(
    spoilt: tuple[Program, Defect],
) -> None:
    program, defect = spoilt
    machine = program.run(defect)
    call = next(call for call in program.calls if call.line == defect.line)
    if not call.waited or defect.kind == "repeat" or _paired(machine, call):
        return
    for finding in diagnose(machine.evidence()):
        assert set(finding.ranks) <= {defect.rank}


def _paired(machine: Machine, call: Call) -> bool:
    """Whether a later call of the group took the place of the missing one, and all went on."""
    waiting = [rank.awaited for rank in machine.ranks if rank.awaited is not None]
    return not any(each.place == call.place for each in waiting)


def test_two_that_both_send_first_are_named_as_that_and_nobody_is_blamed() -> None:
    first, second = Call(1, "send", peer=1), Call(2, "recv", peer=1)
    other = [Call(1, "send", peer=0), Call(2, "recv", peer=0)]
    (finding,) = diagnose(Machine({"0": (0, 1)}, [[first, second], other]).evidence())
    assert (finding.code, finding.ranks) == ("DDP417", ())
    assert lines(finding) == {1}


def test_of_two_equal_parties_the_one_in_a_collective_is_told_first() -> None:
    lead = [[Call(1, "recv", peer=rank + 2)] for rank in (0, 1)]
    rest = [[Call(5, "all_reduce")] for _ in (2, 3)]
    (finding,) = diagnose(Machine({"0": (0, 1, 2, 3)}, [*lead, *rest]).evidence())
    assert (finding.code, finding.ranks) == ("DDP400", ())
    assert finding.place is not None
    assert finding.place.line == 5


def test_one_that_sends_first_and_one_that_receives_first_are_well() -> None:
    one = [Call(1, "send", peer=1), Call(2, "recv", peer=1)]
    other = [Call(3, "recv", peer=0), Call(4, "send", peer=0)]
    assert diagnose(Machine({"0": (0, 1)}, [one, other]).evidence()) == []


def test_a_ring_of_sends_is_a_deadlock_of_all() -> None:
    ring = [
        [Call(1, "send", peer=(rank + 1) % 4), Call(2, "recv", peer=(rank - 1) % 4)]
        for rank in range(4)
    ]
    (finding,) = diagnose(Machine({"0": (0, 1, 2, 3)}, ring).evidence())
    assert finding.code == "DDP417"
    assert {rank for place in finding.places for rank in place.ranks} == {0, 1, 2, 3}
