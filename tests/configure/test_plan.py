"""What a launch file must say follows from the machine, and from what was asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddpdoctor.configure.plan import Impossible, Plan, Wish, plan
from ddpdoctor.environment.model import Absent, Cpus, Environment, Memory, Python, Unknown

GIB = 1 << 30


def machine(*, cpus: int = 8, memory: int = 64 * GIB, limit: int | None = None) -> Environment:
    nothing = dict.fromkeys(Environment.model_fields, Unknown(unknown="not asked"))
    python = Python(version="3", implementation="CPython", executable="python", platform="Linux")
    return Environment.model_validate(
        {
            **nothing,
            "python": python,
            "launchers": (),
            "context": (),
            "variables": (),
            "planned_ranks": None,
            "gpus": Absent(absent="none"),
            "cpus": Cpus(count=64, affinity=cpus, quota=Absent(absent="none")),
            "memory": Memory(
                total=128 * GIB,
                available=memory,
                limit=Absent(absent="none") if limit is None else limit,
            ),
        }
    )


def test_without_a_gpu_there_is_a_rank_for_each_cpu_that_may_be_used() -> None:
    chosen = plan(Wish(), machine(cpus=6))
    assert (chosen.nproc, chosen.device, chosen.threads) == (6, "cpu", 1)


def test_no_more_ranks_are_planned_than_there_is_memory_for() -> None:
    assert plan(Wish(), machine(cpus=8, memory=3 * GIB)).nproc == 3
    assert plan(Wish(), machine(cpus=8, limit=2 * GIB)).nproc == 2
    assert plan(Wish(), machine(cpus=8, limit=GIB // 2)).nproc == 1


def test_gpus_that_are_not_here_must_be_counted_by_the_user() -> None:
    with pytest.raises(Impossible, match="--nproc N"):
        plan(Wish(device="cuda"), machine())
    chosen = plan(Wish(device="cuda", nproc=8), machine())
    assert (chosen.nproc, chosen.here) == (8, False)


def test_threads_on_a_node_that_is_not_here_are_not_guessed_from_this_one() -> None:
    assert plan(Wish(device="cuda", nproc=2), machine(cpus=64)).threads == 1
    assert plan(Wish(device="cuda", nproc=2, cpus=32), machine(cpus=64)).threads == 16


@given(nproc=st.integers(1, 300), cpus=st.integers(1, 300), nodes=st.integers(1, 50))
def test_ranks_of_a_node_never_have_more_threads_than_it_has_cpus(
    nproc: int, cpus: int, nodes: int
) -> None:
    chosen: Plan = plan(Wish(nproc=nproc, nodes=nodes), machine(cpus=cpus))
    assert chosen.world_size == nproc * nodes
    assert chosen.threads >= 1
    assert chosen.threads == 1 or chosen.threads * chosen.nproc <= cpus
