"""How ranks end, and how that is told."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ddpdoctor.launch import ForkServer, Job
from tests.launch.helpers import BODIES, Launch, outputs, run, wait_until

ENDINGS = st.one_of(
    st.just(["return"]),
    st.just(["raise"]),
    st.just(["interrupt"]),
    st.integers(0, 255).map(lambda status: ["exit", status]),
    st.sampled_from([signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT]).map(
        lambda number: ["signal", int(number)]
    ),
)


def fate_of(ending: list[object]) -> tuple[object, object]:
    match ending:
        case ["exit", status]:
            return (status, None)
        case ["signal", number]:
            return (None, number)
        case ["interrupt"]:
            return (None, signal.SIGINT)
    return (0 if ending == ["return"] else 1, None)


@settings(max_examples=12, deadline=None)
@given(how=st.lists(ENDINGS, min_size=1, max_size=4))
@example(how=[["exit", 130], ["interrupt"]])  # what a shell calls an interrupt is a status, too
def test_every_rank_is_told_with_its_own_ending(
    server: ForkServer, how: list[list[object]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        job = Job(f"{BODIES}:end", len(how), Path(folder), kwargs={"how": how}, cwd=Path(folder))
        with server.launch(job) as world:
            run(world)
            fates = {fate.rank: fate for fate in world.poll()}
        assert [(f.exit_code, f.signal) for _, f in sorted(fates.items())] == list(
            map(fate_of, how)
        )
        assert [fates[rank.rank].pid for rank in world.ranks] == [rank.pid for rank in world.ranks]
        assert not any(fate.killed_by_us for fate in fates.values())
        assert sorted(world.results) == [r for r, e in enumerate(how) if e == ["return"]]
        assert not list(Path(folder).glob("core*"))


@pytest.mark.parametrize("status", [None, 0, 3, 259, -1, True, "a word"])
def test_sys_exit_means_what_it_means_to_the_interpreter(launch: Launch, status: object) -> None:
    real = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.exit({status!r})"],
        capture_output=True,
        text=True,
        check=False,
    )
    world = run(launch("exit_with", 1, kwargs={"status": status}))
    assert world.poll()[0].exit_code == real.returncode
    assert outputs(world, "stderr") == [real.stderr]


def test_a_rank_that_crashes_leaves_its_stack(launch: Launch) -> None:
    world = run(launch("end", 1, kwargs={"how": [["signal", signal.SIGSEGV]]}))
    (said,) = outputs(world, "stderr")
    assert "Segmentation fault" in said
    assert f'"{BODIES}"' in said


def test_a_rank_ends_as_tidily_as_the_interpreter(launch: Launch, tmp_path: Path) -> None:
    world = run(launch("ends_tidily", 1, kwargs={"folder": str(tmp_path)}))
    assert outputs(world) == ["thread\nlast registered\nfirst registered\n"]
    assert (tmp_path / "log").read_text() == "buffered\n"
    assert (tmp_path / "child").exists(), "a child that is not a daemon is waited for"
    assert (tmp_path / "finalized").exists()
    assert not list(tmp_path.glob("temporary-*"))


def test_a_rank_does_not_run_the_exit_hooks_of_the_servers_imports(launch: Launch) -> None:
    standard_library_only = 2  # logging's and multiprocessing's
    assert run(launch("tell", 1)).results[0]["exit_hooks"] == standard_library_only


def test_a_rank_may_hang_in_an_exit_hook(launch: Launch) -> None:
    world = launch("hang_at_exit", 1)
    wait_until(lambda: bool(world.results))
    assert world.poll() == []
    world.kill()
    assert [fate.killed_by_us for fate in world.poll()] == [True]


def test_ranks_that_we_kill_are_told_as_killed_by_us_and_complain_of_nobody(
    launch: Launch, tmp_path: Path
) -> None:
    world = launch("block", 3, kwargs={"folder": str(tmp_path)})
    wait_until(lambda: len(list(tmp_path.glob("blocked-*"))) == 3)
    world.kill()
    assert world.ended
    assert {(f.rank, f.signal, f.killed_by_us) for f in world.poll()} == {
        (rank, signal.SIGKILL, True) for rank in range(3)
    }
    assert not any("closed by peer" in said for said in outputs(world, "stderr"))


def test_ranks_that_we_kill_leave_no_shared_memory_that_they_were_about_to_make(
    launch: Launch,
) -> None:
    world = launch("share_halfway", 2)
    wait_until(lambda: all(outputs(world)))
    files = [Path(said.strip()) for said in outputs(world)]
    assert all(file.exists() for file in files)
    world.kill()
    assert not any(file.exists() for file in files)


@pytest.mark.parametrize("nproc", [2, 20])
def test_a_world_that_is_ended_at_once_has_no_ranks_or_all(launch: Launch, nproc: int) -> None:
    world = launch("block", nproc, kwargs={"folder": "/nowhere"})
    world.kill()
    assert len(world.ranks) in (0, nproc)
    assert len(world.poll()) == len(world.ranks)


def test_who_looks_rarely_sees_an_end_with_the_first_look(launch: Launch) -> None:
    world = launch("end", nproc=2, kwargs={"how": [["return"], ["exit", 3]]})
    pids = [rank.pid for rank in world.ranks]
    wait_until(lambda: not any(map(psutil.pid_exists, (*pids, world._keeper))))
    assert {fate.rank: fate.exit_code for fate in world.poll()} == {0: 0, 1: 3}
    assert world.ended
