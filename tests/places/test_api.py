"""What programs may call."""

from __future__ import annotations

import doctest
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import ddpdoctor
from ddpdoctor import api, watch
from ddpdoctor.watch import starting


def test_the_examples_in_its_documentation_are_so() -> None:
    results = doctest.testmod(api)
    assert results.attempted > 0
    assert results.failed == 0


def test_nothing_to_read_is_a_value_error(tmp_path: Path) -> None:
    calls: list[Callable[[], object]] = [
        api.lint,
        api.diagnose,
        lambda: api.lint(tmp_path / "none.py"),
        lambda: api.diagnose(tmp_path),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"\w"):
            call()


def test_the_command_finds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "import torch.distributed as dist\nif dist.get_rank() == 0:\n    dist.barrier()\n"
    Path("train.py").write_text(text)
    from ddpdoctor import cli

    assert cli.run(["lint", "train.py", "--format=json", "-o", "found.json"]) == 1
    told = json.loads(Path("found.json").read_text())["findings"]
    (finding,) = api.lint(Path("train.py"))
    assert [(each["code"], each["cause"]) for each in told] == [(finding.code, finding.cause)]


def test_the_package_imports_nothing_before_it_is_asked() -> None:
    code = (
        "import sys; before = {*sys.modules}; import ddpdoctor;"
        "print(*({*sys.modules} - before), file=sys.stderr);"
        "ddpdoctor.watch.start; ddpdoctor.api.lint; print('torch' in sys.modules, end='')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted(done.stderr.split()) == ["__future__", "ddpdoctor"]
    assert done.stdout == "False"
    with pytest.raises(AttributeError):
        _ = ddpdoctor.nothing  # type: ignore[attr-defined]


@pytest.mark.distributed(nproc=2, watch=False)
def test_ranks_that_begin_to_watch_agree_on_a_folder(
    shared_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shared_path)
    watch.start()
    watch.start()
    dist.all_reduce(torch.ones(()))
    dist.barrier()
    rank = dist.get_rank()
    (log,) = shared_path.glob(f"reports/run-*/attempt-*/rank-{rank}.log")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    kinds = [event["k"] for event in events]
    assert kinds.count("start") == kinds.count("group") == 1
    assert kinds.index("group") < kinds.index("collective")
    assert "file" not in kinds, "the doctor's folder is none of the job's"
    assert len(list((shared_path / "reports").iterdir())) == 1


@pytest.mark.distributed(nproc=1, watch=False)
def test_the_tracebacks_of_a_watched_job_have_its_own_frames_alone(
    shared_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shared_path)
    watch.start()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))

    def fails(_: torch.Tensor) -> None:
        raise RuntimeError

    def backward() -> None:
        output = model(torch.ones(3, 2))
        output.register_hook(fails)
        output.sum().backward()

    broken: list[Callable[[], object]] = [
        lambda: model(torch.ones(3, 5)),
        backward,
        lambda: dist.all_reduce(torch.ones(2, dtype=torch.int16)),
        lambda: list(torch.utils.data.DataLoader([torch.ones(1), torch.ones(2)], batch_size=2)),
    ]
    for call in broken:
        with pytest.raises(RuntimeError) as told:
            call()
        files = [frame.filename for frame in traceback.extract_tb(told.value.__traceback__)]
        assert files.count(__file__) >= 2, "the job's own are there"
        assert len(files) > 2, "and torch's"
        assert not [file for file in files if "/ddpdoctor/watch/" in file]
    (log,) = shared_path.glob("reports/run-*/attempt-*/rank-0.log")
    thrown = [line for line in log.read_text().splitlines() if '"thrown"' in line]
    assert len(thrown) == len(broken)


def raises(_: int) -> None:
    raise ValueError("a bad sample")


@pytest.mark.distributed(nproc=1, backend=None, watch=False)
def test_nor_have_those_of_what_a_watched_process_spawns(
    shared_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shared_path)
    watch.start()
    with pytest.raises(mp.ProcessRaisedException) as told:
        mp.start_processes(raises, nprocs=1, start_method="fork")
    files = [frame.filename for frame in traceback.extract_tb(told.value.__traceback__)]
    assert not [file for file in files if "/ddpdoctor/watch/" in file]
    assert "a bad sample" in str(told.value)
    assert "/ddpdoctor/watch/" not in str(told.value)


@pytest.mark.distributed(nproc=2, backend=None, watch=False)
def test_a_rank_may_begin_to_watch_before_it_joins(
    shared_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shared_path)
    watch.start()
    assert not (shared_path / "reports").exists()
    dist.init_process_group(
        "gloo",
        init_method=f"file://{shared_path}/store",
        rank=int(os.environ["RANK"]),
        world_size=2,
    )
    dist.barrier()
    assert len(list(shared_path.glob("reports/run-*/attempt-*/rank-*.log"))) == 2


def test_a_process_that_is_watched_already_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Path | None] = []
    monkeypatch.setattr(starting, "_start", begun.append)
    monkeypatch.setattr(starting, "_begun", False)
    for variable in ("DDPDOCTOR_RUN", "DDPDOCTOR_DISABLE"):
        with monkeypatch.context() as here:
            here.setenv(variable, "1")
            watch.start(tmp_path)
    assert begun == []
    watch.start(tmp_path)
    watch.start(tmp_path)
    assert begun == [tmp_path]
