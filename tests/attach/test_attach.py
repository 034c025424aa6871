"""Jobs that hang and were started by themselves, looked at from outside."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from ddpdoctor.attach import session, stacks
from ddpdoctor.attach.processes import find
from ddpdoctor.attach.session import NothingFound, attach
from tests.patience import ENDLESS, within

SCRIPT = """\
import os, sys, time
import torch, torch.distributed as dist, torch.multiprocessing as mp
from torch.utils.data import DataLoader

class Slow:
    def __len__(self):
        return 8
    def __getitem__(self, index):
        open(os.environ["READY"] + "worker", "w").close()
        time.sleep(600)

def train(rank, mode):
    store = dist.FileStore(os.environ["STORE"], 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    open(os.environ["READY"] + str(rank), "w").close()
    if rank == 0:
        dist.barrier()
    elif mode == "loader":
        next(iter(DataLoader(Slow(), num_workers=1)))
    else:
        dist.all_reduce(torch.ones(2))

if __name__ == "__main__":
    if sys.argv[1] == "spawn":
        mp.spawn(train, ("spawn",), nprocs=2)
    train(int(os.environ["RANK"]), sys.argv[1])
"""
BARRIER, LOADER, REDUCE = (
    next(n for n, line in enumerate(SCRIPT.splitlines(), 1) if call in line)
    for call in ("dist.barrier()", "next(iter(", "dist.all_reduce(")
)

Start = Callable[[str], list[int]]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Start a job that hangs, once for all tests: being looked at does not change it.

    What was started is gone afterwards, whatever happens.
    """
    begun: dict[str, list[subprocess.Popen[bytes]]] = {}

    def begin(mode: str) -> list[int]:
        if mode not in begun:
            begun[mode] = []
            _start(mode, tmp_path_factory.mktemp(mode), begun[mode])
        return [process.pid for process in begun[mode]]

    yield begin
    processes = [process for job in begun.values() for process in job]
    parents = [psutil.Process(each.pid) for each in processes]
    family = [child for parent in parents for child in parent.children(recursive=True)]
    for process in (*processes, *family):
        process.kill()
    for each in processes:
        each.wait(ENDLESS)
    assert psutil.wait_procs(family, timeout=ENDLESS)[1] == []


def _start(mode: str, folder: Path, begun: list[subprocess.Popen[bytes]]) -> None:
    script = folder / "train.py"
    script.write_text(SCRIPT)
    common = {**os.environ, "STORE": f"{folder}/store", "READY": f"{folder}/ready-"}
    common |= {"OMP_NUM_THREADS": "1", "MASTER_PORT": f"{os.getpid()}{mode}"}
    common.pop("RANK", None)
    ranks = [{}] if mode == "spawn" else [{"RANK": str(r), "WORLD_SIZE": "2"} for r in (0, 1)]
    for variables in ranks:
        command = [sys.executable, str(script), mode]
        begun.append(subprocess.Popen(command, env={**common, **variables}))
    wanted = ["ready-0", "ready-1", *(["ready-worker"] if mode == "loader" else [])]
    assert within(60, lambda: all((folder / name).exists() for name in wanted))
    ranks = [psutil.Process(each.pid) for each in begun]
    for rank in [*ranks, *(child for each in ranks for child in each.children(recursive=True))]:
        _wait_until_it_waits(rank)


def _wait_until_it_waits(process: psutil.Process) -> None:
    """From the mark to the call that blocks."""
    looks: list[tuple[object, object]] = []

    def stands_still() -> bool:
        looks.append((process.status(), process.cpu_times()))
        return looks[-4:] == [(psutil.STATUS_SLEEPING, process.cpu_times())] * 4

    assert within(60, stands_still), "it goes on computing"


def _may_look() -> bool:
    """Whether py-spy is there, and this machine lets it read a process that is not its child."""
    spy = stacks.py_spy()
    if spy is None:
        return False
    code = "import time; print('ready', flush=True); time.sleep(600)"
    stranger = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert stranger.stdout is not None
        stranger.stdout.readline()
        command = [spy, "dump", "--nonblocking", "--pid", str(stranger.pid)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    finally:
        stranger.kill()
        stranger.communicate()


needs_py_spy = pytest.mark.skipif(
    not _may_look(), reason="needs py-spy, and the right to read other processes"
)


@needs_py_spy
def test_the_lines_of_a_deadlock_are_found_and_the_job_is_left_alone(start: Start) -> None:
    pids = start("reduce")
    done = subprocess.run(
        [sys.executable, "-m", "ddpdoctor", "attach", *map(str, pids), "--format", "json"],
        capture_output=True,
        timeout=ENDLESS,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["certainty"] == "evidence"
    stood = {
        (tuple(place["ranks"]), place["place"]["line"])
        for place in finding["places"]
        if place["waits_for"]
    }
    assert stood == {((0,), BARRIER), ((1,), REDUCE)}
    assert finding["code"] == "DDP401"  # by what the source says
    states = {psutil.Process(pid).status() for pid in pids}
    assert states <= {psutil.STATUS_SLEEPING, psutil.STATUS_RUNNING}


@pytest.mark.thorough
@needs_py_spy
def test_a_rank_in_its_data_loader_is_named_and_the_worker_is_no_rank(start: Start) -> None:
    pids = start("loader")
    assert [[rank.pid for rank in job.ranks] for job in find(pids)[0]] == [pids]
    seen = attach(pids)
    (attempt,) = seen.attempts
    assert [(line.rank, line.pid) for line in attempt.ranks] == list(enumerate(pids))
    (finding,) = seen.findings
    assert (finding.title, finding.ranks) == ("missing-call", (1,))
    assert finding.place is not None
    assert finding.place.line == LOADER


@pytest.mark.thorough
@needs_py_spy
def test_the_children_of_mp_spawn_are_ranks_though_no_variable_says_so(start: Start) -> None:
    seen = attach(start("spawn"))
    (attempt,) = seen.attempts
    assert attempt.name == "train.py"
    assert attempt.world_size == 2
    assert {line.place.line for line in attempt.ranks if line.place} == {BARRIER, REDUCE}
    assert any("in the order in which they were started" in line for line in seen.not_seen)


def test_without_py_spy_it_says_how_to_get_it_and_who_the_ranks_are(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pids = start("reduce")
    monkeypatch.setattr(session, "py_spy", lambda: None)
    seen = attach(pids, pause=0.1)
    assert seen.findings == ()
    assert "pip install 'ddpdoctor[attach]'" in seen.not_seen[0]
    assert [line.pid for line in seen.attempts[0].ranks] == pids

    refusing = tmp_path / "py-spy"
    refusing.write_text("#!/bin/sh\necho 'Error: Permission denied (os error 13)' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setattr(session, "py_spy", lambda: str(refusing))
    seen = attach(pids, pause=0.1)
    assert seen.findings == ()
    assert any("ptrace_scope" in line for line in seen.not_seen)


def test_a_process_that_is_no_rank_is_one_line() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as lone:
        with pytest.raises(NothingFound, match=f"no process in {lone.pid} or below is a rank"):
            attach([lone.pid])
        assert lone.stdin is not None
        lone.stdin.close()
    done = subprocess.run(
        [sys.executable, "-m", "ddpdoctor", "attach", "999999999"],
        capture_output=True,
        timeout=ENDLESS,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
