"""Launching a job: what its ranks get, and what the launcher gets back."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ddpdoctor.launch import ForkServer, Job, LaunchError
from tests.launch.helpers import BODIES, Launch, outputs, run, wait_until


def test_every_rank_gets_its_place_and_the_functions_arguments(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    launch("tell", 1)  # the server runs from here on
    monkeypatch.setenv("COLOUR", "set after the server started")
    monkeypatch.setenv("WORLD_SIZE", "17")
    monkeypatch.delenv("HOME")
    world = run(launch("tell", 2, kwargs={"a": [1, None], "b": "ü"}, cwd=tmp_path))
    for rank in range(2):
        told = world.results[rank]
        assert told["arguments"] == {"a": [1, None], "b": "ü"}
        assert told["env"] == {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": "2",
            "LOCAL_WORLD_SIZE": "2",
            "OMP_NUM_THREADS": "1",
            "COLOUR": "set after the server started",
            "HOME": None,
        }
        assert told["cwd"] == str(tmp_path)
        assert told["stdin"] == ""


def test_the_jobs_environment_wins_over_the_callers(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLOUR", "the caller's")
    world = run(launch("tell", 1, env={"COLOUR": "the job's", "OMP_NUM_THREADS": "2"}))
    assert world.results[0]["env"]["COLOUR"] == "the job's"
    assert world.results[0]["env"]["OMP_NUM_THREADS"] == "2"


def test_a_target_is_found_through_a_path_entry_that_is_younger_than_the_server(
    server: ForkServer, launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch("tell", 1)
    (tmp_path / "young_module.py").write_text("def answer(): return 42\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with server.launch(Job("young_module:answer", 1, server.fresh_run_dir())) as world:
        assert run(world).results == {0: 42}


def test_four_ranks_train_one_model_with_ddp(launch: Launch) -> None:
    results = run(launch("train", 4)).results
    assert len(results) == 4
    assert len(set(results.values())) == 1


def test_a_rank_may_join_leave_and_join_again(launch: Launch) -> None:
    assert run(launch("meet_twice")).results == {0: [2, 2], 1: [2, 2]}


def test_ranks_draw_as_separate_processes_do(launch: Launch) -> None:
    first, second = run(launch("draw")).results.values()
    assert all(first[by] != second[by] for by in ("random", "numpy", "torch"))


def test_worlds_that_run_at_the_same_time_do_not_meet(launch: Launch, tmp_path: Path) -> None:
    stuck = launch("block", 2, kwargs={"folder": str(tmp_path)})
    with ThreadPoolExecutor(3) as pool:
        worlds = list(pool.map(lambda _: launch("meet_twice"), range(3)))
        list(pool.map(run, worlds))
    assert [world.results for world in worlds] == [{0: [2, 2], 1: [2, 2]}] * 3
    assert stuck.poll() == []


def test_what_a_rank_writes_is_kept_apart(launch: Launch) -> None:
    world = run(launch("end", kwargs={"how": [["raise"], ["return"]]}))
    first, second = outputs(world, "stderr")
    assert "ValueError: so it was asked" in first
    assert "launch/rank.py" not in first, "our own frames are of no use to the reader"
    assert second == ""


def test_the_stacks_of_stuck_ranks_name_their_lines_even_with_the_gil_held(
    launch: Launch, tmp_path: Path
) -> None:
    world = launch("block", 3, kwargs={"folder": str(tmp_path)})
    wait_until(lambda: len(list(tmp_path.glob("blocked-*"))) == 3)
    stacks: dict[int, str] = {}

    def all_stand_there() -> bool:  # they go there when they have told of it
        stacks.update(world.stacks())
        return "in barrier" in stacks[0] and "in hold_the_gil_for_ever" in stacks[2]

    wait_until(all_stand_there)
    assert f'{BODIES}", line' in stacks[1]
    assert "in block" in stacks[1]
    assert all("launch/rank.py" not in stack for stack in stacks.values())
    assert world.poll() == [], "a rank survives the question"


def test_a_result_that_is_not_json_fails_the_rank_and_says_so(launch: Launch) -> None:
    world = run(launch("not_json", 1))
    assert world.poll()[0].exit_code == 1
    assert world.results == {}
    assert "not JSON serializable" in outputs(world, "stderr")[0]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"nproc": 0}, "nproc is 0"),
        ({"target": "no_colon"}, "not of the form module:function"),
        ({"target": "missing.py:f"}, "missing.py does not exist"),
        ({"kwargs": {"a": object()}}, "not JSON"),
        ({"run_dir": Path("/proc")}, "cannot write to the run directory"),
        ({"run_dir": Path("/nowhere")}, "cannot write to the run directory"),
    ],
)
def test_a_job_that_cannot_be_is_refused_in_one_line(
    server: ForkServer, change: dict[str, object], complaint: str, tmp_path: Path
) -> None:
    options = {"target": f"{BODIES}:tell", "nproc": 1, "run_dir": tmp_path, **change}
    with pytest.raises(LaunchError, match=complaint) as refusal:
        server.launch(Job(**options))  # type: ignore[arg-type]
    assert "\n" not in str(refusal.value)


def test_a_run_directory_serves_once(server: ForkServer, launch: Launch) -> None:
    used = run(launch("tell", 1)).job.run_dir
    with pytest.raises(LaunchError, match="was used by another launch"):
        server.launch(Job(f"{BODIES}:tell", 1, used))


def test_the_doctors_side_imports_no_torch() -> None:
    code = "import sys, ddpdoctor.launch; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
