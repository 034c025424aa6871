"""What watched ranks write down is what they did; a deadlock is proven, slowness is not."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ddpdoctor.diagnose import Deadlock, diagnose
from ddpdoctor.evidence import Evidence, Place
from ddpdoctor.launch import ForkServer, Job
from ddpdoctor.observation import Observation

BODIES = Path(__file__).with_name("bodies.py")
PATIENCE = 120.0


def line(comment: str) -> int:
    """The line of bodies.py that ends with this comment."""
    lines = BODIES.read_text("utf-8").splitlines()
    (number,) = (n for n, text in enumerate(lines, 1) if text.endswith(f"# {comment}"))
    return number


class Watched:
    """A finished launch: its evidence, and the deadlock if one was proven."""

    def __init__(self, server: ForkServer, folder: Path, body: str, nproc: int = 4) -> None:
        env = {"DDPDOCTOR_RUN_DIR": str(folder)}
        job = Job(f"{BODIES}:{body}", nproc, folder, env=env, watch=True)
        self.deadlock: Deadlock | None = None
        with server.launch(job) as world:
            observation = Observation(folder, nproc)
            until = time.monotonic() + PATIENCE
            while not world.ended and self.deadlock is None and time.monotonic() < until:
                self.deadlock = observation.poll(world.poll())
                time.sleep(0.01)
            world.kill()
            fates = world.poll()
        observation.poll(fates)
        self.evidence: Evidence = observation.evidence
        self.exit_codes = [rank.fate.exit_code for rank in self.evidence.ranks if rank.fate]
        self.folder = folder


def test_every_kind_of_event_is_recorded_with_the_users_line(
    server: ForkServer, tmp_path: Path
) -> None:
    watched = Watched(server, tmp_path, "record_everything")
    assert watched.exit_codes == [0, 0, 0, 0]
    for rank in watched.evidence.ranks:
        assert rank.groups["0"].ranks == (0, 1, 2, 3)
        assert (len(rank.source), rank.nested, len(rank.joined_by)) == (16, None, 1)
        assert rank.groups["0"].timeout == 1800.0
        (sampler,) = rank.samplers
        assert (sampler.length, sampler.rank, sampler.seed) == (10, rank.rank, 3)
        assert sampler.place == Place(str(BODIES), line("the sampler"), "record_everything")
        (wrapper,) = rank.wrappers
        assert wrapper.parameters == ("module.weight", "module.bias") or wrapper.parameters == (
            "weight",
            "bias",
        )
        assert wrapper.place is not None
        assert wrapper.place.line == line("the wrapper")
        assert rank.steps == 2
        ops = [c.op for c in rank.collectives if c.op in ("broadcast", "all_reduce", "barrier")]
        assert ops == ["broadcast", "all_reduce", "barrier"]
        broadcast = next(c for c in rank.collectives if c.op == "broadcast")
        assert (broadcast.root, broadcast.shapes, broadcast.dtype) == (1, ((3,),), "float32")
        assert broadcast.place is not None
        assert broadcast.place.line == line("the broadcast")
        assert next(c for c in rank.collectives if c.op == "all_reduce").reduce_op == "MAX"
        assert rank.exiting is not None
        assert [f.action for f in rank.files][-1] == "load"
    save, rename, _ = watched.evidence.ranks[0].files
    assert (save.action, save.keys) == ("save", ("model", "ema"))
    assert (rename.action, rename.path) == ("replace", str(tmp_path / "final"))
    assert save.ended is not None
    assert save.place is not None
    assert save.place.line == line("the save")


def test_the_sequence_numbers_of_all_ranks_agree_and_count_what_ddp_issues(
    server: ForkServer, tmp_path: Path
) -> None:
    watched = Watched(server, tmp_path, "record_everything")
    numbers = [[(c.op, c.seq) for c in rank.collectives] for rank in watched.evidence.ranks]
    assert numbers[0] == numbers[1] == numbers[2] == numbers[3]
    assert numbers[0][0][1] > 5


def test_an_exception_is_recorded_with_its_cause_and_the_users_line(
    server: ForkServer, tmp_path: Path
) -> None:
    watched = Watched(server, tmp_path, "raise_with_a_cause", nproc=1)
    (error,) = watched.evidence.ranks[0].exceptions
    assert (error.type, error.message) == ("RuntimeError", "no checkpoint")
    assert error.place is not None
    assert error.place.line == line("the raise")
    assert error.cause is not None
    assert error.cause.type == "FileNotFoundError"
    assert watched.exit_codes == [1]
    stderr = (tmp_path / "rank-0.stderr").read_text("utf-8")
    assert stderr.rstrip().endswith("RuntimeError: no checkpoint")


def test_a_barrier_on_one_rank_is_proven_dead_on_the_right_rank_and_line(
    server: ForkServer, tmp_path: Path
) -> None:
    watched = Watched(server, tmp_path, "rank_conditional_barrier")
    assert watched.deadlock is not None
    (finding,) = diagnose(watched.evidence)
    assert (finding.code, finding.certainty, finding.ranks) == ("DDP400", "proven", (0,))
    assert [(p.ranks, p.place.line) for p in finding.places if p.place] == [
        ((0,), line("the barrier")),
        ((1, 2, 3), line("the backward")),
    ]


def test_a_group_that_is_destroyed_by_itself_is_not_taken_for_the_world(
    server: ForkServer, tmp_path: Path
) -> None:
    watched = Watched(server, tmp_path, "destroy_one_group_then_all", 2)
    assert watched.exit_codes == [0, 0]
    for rank in watched.evidence.ranks:
        _, _, second = rank.groups
        assert rank.dissolved == [second]
        assert rank.left_place == Place(
            str(BODIES), line("the end of the world"), "destroy_one_group_then_all"
        )


def test_groups_taken_in_opposite_order_are_proven_dead(server: ForkServer, tmp_path: Path) -> None:
    watched = Watched(server, tmp_path, "groups_in_a_circle")
    assert watched.deadlock is not None
    waits = {blocked.rank: blocked.waits_for for blocked in watched.deadlock.blocked}
    assert waits == {0: (1,), 1: (0,), 2: (0, 1), 3: (0, 1)}


def test_a_barrier_at_exit_is_told_from_one_in_the_program(
    server: ForkServer, tmp_path: Path
) -> None:
    watched = Watched(server, tmp_path, "barrier_at_exit")
    assert watched.deadlock is not None
    held = [b for b in watched.deadlock.blocked if b.collective.at_exit]
    assert [b.rank for b in held] == [1]
    assert held[0].collective.place is not None
    assert held[0].collective.place.line == line("the exit barrier")


@pytest.mark.parametrize("body", ["one_rank_is_slow", "one_rank_computes"])
def test_waiting_for_a_slow_rank_is_no_deadlock(
    server: ForkServer, tmp_path: Path, body: str
) -> None:
    watched = Watched(server, tmp_path, body)
    assert watched.deadlock is None
    assert watched.exit_codes == [0, 0, 0, 0]
    assert diagnose(watched.evidence) == []


def test_classes_that_raise_when_looked_at_do_not_break_the_job(
    server: ForkServer, tmp_path: Path
) -> None:
    watched = Watched(server, tmp_path, "a_model_whose_classes_misbehave", nproc=2)
    assert watched.exit_codes == [0, 0]
    assert (tmp_path / "rank-0.stderr").read_text("utf-8") == ""
