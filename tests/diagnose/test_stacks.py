"""What stacks alone allow to say."""

import pytest

from ddpdoctor.diagnose.stacks import awaited, judge_stacks
from ddpdoctor.evidence import Evidence, Place, RankEvidence, Stuck

C10D = "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
LOGGER = "/opt/venv/lib/python3.11/site-packages/torch/distributed/c10d_logger.py"
DDP = "/opt/venv/lib/python3.11/site-packages/torch/nn/parallel/distributed.py"
FORWARD = Place(DDP, 1, "DistributedDataParallel.forward")
GRAPH = "/opt/venv/lib/python3.11/site-packages/torch/autograd/graph.py"


def user(line: int) -> Place:
    return Place("/home/u/train.py", line, "main")


def inside(op: str, line: int) -> tuple[Place, ...]:
    wrapper = Place(LOGGER, 83, "_exception_logger.<locals>.wrapper")
    return (user(line), wrapper, Place(C10D, 5356, op))


def seen(*stacks: tuple[Place, ...] | None, world: int = 0) -> Evidence:
    """Ranks with these stacks; None is one that moves."""
    size = max(world, len(stacks))
    ranks = [RankEvidence(rank, size) for rank in range(size)]
    for rank, stack in zip(ranks, stacks, strict=False):
        rank.pid = 100 + rank.rank
        if stack is not None:
            call = awaited(stack)
            waiting = (call,) if call else ()
            place = next((f for f in reversed(stack) if f.file.startswith("/home")), None)
            rank.stuck = Stuck(0.0, 1.0, stack, place, waiting, awaited=call)
    return Evidence(size, ranks)


@pytest.mark.parametrize(
    ("frames", "op"),
    [
        (inside("barrier", 8), "barrier"),
        ((user(8), Place(C10D, 1, "gather_object"), Place(C10D, 2, "gather")), "gather_object"),
        ((user(9), Place(GRAPH, 800, "_engine_run_backward")), "all_reduce (backward)"),
        ((user(9), FORWARD, Place(DDP, 2, "_sync_buffers")), "broadcast (forward)"),
        ((user(9), Place("/usr/lib/python3.11/threading.py", 300, "wait")), None),
        ((user(9),), None),
        ((), None),
    ],
)
def test_the_call_that_a_stack_waits_in_is_the_users(
    frames: tuple[Place, ...], op: str | None
) -> None:
    call = awaited(frames)
    assert (call.op if call else None) == op


def test_the_minority_in_another_call_is_named() -> None:
    there = inside("all_reduce", 5)
    (finding,) = judge_stacks(seen(there, there, inside("barrier", 8), there))
    assert finding.ranks == (2,)
    assert finding.certainty == "evidence"
    assert [(p.ranks, p.place, p.waits_for) for p in finding.places] == [
        ((2,), user(8), (0, 1, 3)),
        ((0, 1, 3), user(5), (2,)),
    ]


def test_on_a_tie_both_sides_are_shown_and_nobody_is_named() -> None:
    (finding,) = judge_stacks(seen(inside("barrier", 8), inside("all_reduce", 5)))
    assert finding.ranks == ()
    assert len(finding.places) == 2


def test_the_same_call_at_another_line_is_another_call() -> None:
    there = inside("all_reduce", 5)
    (finding,) = judge_stacks(seen(there, there, inside("all_reduce", 6)))
    assert finding.ranks == (2,)


def test_a_rank_that_stands_outside_is_missed_by_those_that_wait() -> None:
    there = inside("all_reduce", 5)
    lock = (user(7), Place("/usr/lib/python3.11/threading.py", 300, "wait"))
    (finding,) = judge_stacks(seen(there, lock, there))
    assert (finding.title, finding.severity, finding.ranks) == ("missing-call", "error", (1,))
    assert finding.place == user(7)


def test_a_rank_that_works_is_a_stall_and_no_more_than_a_warning() -> None:
    there = inside("all_reduce", 5)
    (finding,) = judge_stacks(seen(there, None, there))
    assert (finding.title, finding.severity, finding.ranks) == ("stall", "warning", (1,))


def test_ranks_that_all_wait_alike_are_told_so_and_nobody_is_named() -> None:
    there = inside("all_reduce", 5)
    (finding,) = judge_stacks(seen(there, there))
    assert (finding.title, finding.severity, finding.ranks) == ("all-wait-together", "warning", ())
    (finding,) = judge_stacks(seen(there, there, world=4))
    assert "ranks 2, 3, elsewhere" in finding.cause


@pytest.mark.parametrize("stacks", [(None, None), ((user(7),), (user(7),)), ((user(7),), None)])
def test_where_nobody_waits_for_others_nothing_is_said(
    stacks: tuple[tuple[Place, ...] | None, ...],
) -> None:
    assert judge_stacks(seen(*stacks)) == []
