"""Whatever happens to the doctor, the launcher or the disk, the job is never harmed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ddpdoctor.launch.capacity import kills_for_memory
from ddpdoctor.run.audience import Audience
from ddpdoctor.run.job import Signals
from ddpdoctor.run.session import RunOptions, Session, run
from ddpdoctor.run.worlds import WatchedWorld, Worlds
from tests.patience import ENDLESS, within
from tests.ports import free_port
from tests.run.conftest import HERE, JOB, Doctor, environment, interpreters, living, ranks
from tests.thorough import first_of


def line_of(mark: str) -> int:
    lines = JOB.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))


def report_of(folder: Path) -> dict:
    return json.loads((folder / "report.json").read_text())


AS_JSON = ("--format=json", "-o", "report.json")


@pytest.mark.thorough
def test_a_deadlock_is_proven_told_and_ended(ended, tmp_path: Path) -> None:
    code, _, err = ended(ranks(2, "deadlock"), *AS_JSON)
    assert code == 1, "and not 15, as the launcher says of ranks that SIGTERM ended"
    report = report_of(tmp_path)
    assert report["ended_by"] == "doctor"
    (finding,) = report["findings"]
    assert finding["certainty"] == "proven"
    places = {(tuple(p["ranks"]), p["place"]["line"]) for p in finding["places"]}
    assert ((0,), line_of("the barrier")) in places
    assert f"job.py:{line_of('the barrier')}" in err


def test_a_deadlock_of_threads_that_train_is_proven_and_their_main_threads_are_idle(
    ended, tmp_path: Path
) -> None:
    code, _, err = ended(ranks(2, "in_a_thread"), *AS_JSON)
    assert code == 1, err
    (finding,) = report_of(tmp_path)["findings"]
    assert (finding["code"], finding["certainty"]) == ("DDP401", "proven")
    assert finding["places"][0]["place"]["line"] == line_of("the barrier")


def test_a_silent_error_makes_a_job_that_ended_well_end_with_1(ended, tmp_path: Path) -> None:
    code, out, err = ended(ranks(2, "drift"), *AS_JSON)
    assert (code, out.count("trained")) == (1, 2), err
    report = report_of(tmp_path)
    assert report["ended_by"] == "job"
    assert [each["code"] for each in report["findings"] if each["severity"] == "error"] == [
        "DDP300"
    ]


def test_keep_going_leaves_a_dead_job_alone_and_tells_what_was_proven_whatever_ends_it(
    start: Doctor, tmp_path: Path
) -> None:
    process = start(ranks(2, "deadlock_by_hand"), "--keep-going", *AS_JSON)
    assert process.stderr is not None
    assert "proven" in process.stderr.readline(), "told while the job hangs"
    assert not within(0.5, lambda: len(_ranks_of(tmp_path)) != 2)
    for rank in _ranks_of(tmp_path):
        rank.kill()
    process.communicate(timeout=ENDLESS)
    assert [finding["code"] for finding in report_of(tmp_path)["findings"]] == ["DDP401"]


def test_the_job_goes_on_unwatched_if_the_doctor_is_killed(start: Doctor, tmp_path: Path) -> None:
    process = start(ranks(2, "long"))
    _wait_for(tmp_path / "pid-0", tmp_path / "pid-1")
    process.kill()
    process.wait(ENDLESS)
    (tmp_path / "enough").touch()
    _wait_for(tmp_path / "ended-0", tmp_path / "ended-1")
    assert within(ENDLESS, lambda: not living(tmp_path))


def test_an_interrupted_job_is_told_of_as_it_was(start: Doctor, tmp_path: Path) -> None:
    process = start(ranks(2, "deadlock_by_hand"), "--keep-going", *AS_JSON)
    assert process.stderr is not None
    assert "proven" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    for rank in _ranks_of(tmp_path):
        rank.send_signal(signal.SIGINT)
        rank.kill()
    process.communicate(timeout=ENDLESS)
    report = report_of(tmp_path)
    assert report["ended_by"] == "signal"
    (finding,) = report["findings"]
    assert finding["certainty"] == "proven"


@pytest.mark.parametrize("moment", first_of(["deaths are noted", "a look is taken"]))
def test_a_signal_counts_though_the_job_has_ended_before_it_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    for name, value in environment(tmp_path, {}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)

    def end_the_job() -> None:
        signal.raise_signal(signal.SIGTERM)
        for rank in _ranks_of(tmp_path):
            rank.kill()
        _, alive = psutil.wait_procs(living(tmp_path), 60)
        assert not alive

    def note_deaths(worlds: Worlds) -> None:
        if moment == "deaths are noted" and worlds.deadlocked:
            end_the_job()
        noted(worlds)

    def look(world: WatchedWorld, _: object) -> None:
        if moment == "a look is taken" and world.deadlocked:
            end_the_job()

    noted = Worlds.note_deaths
    (tmp_path / "run").mkdir()
    monkeypatch.setattr(Worlds, "note_deaths", note_deaths)
    options = RunOptions(ranks(2, "deadlock_by_hand"), tmp_path / "run", keep_going=True)
    in_vain = threading.Timer(60, lambda: [each.kill() for each in living(tmp_path)])
    in_vain.start()
    with Signals() as signals:
        session = run(options, signals, Audience(look=look))
    in_vain.cancel()
    assert session.interrupted
    assert [finding.certainty for finding in session.findings] == ["proven"]


def test_a_rank_that_is_killed_is_named(ended, tmp_path: Path) -> None:
    kills = kills_for_memory()
    code, _, _ = ended(ranks(2, "killed"), *AS_JSON)
    assert code != 0
    report = report_of(tmp_path)
    (finding,) = report["findings"]
    assert finding["ranks"] == [1]
    assert "SIGKILL" in finding["cause"]
    assert "memory" not in finding["cause"], "nobody says so"
    if kills_for_memory() == kills:  # other tests, meanwhile, have the kernel kill theirs
        assert "memory" not in json.dumps(finding)
    assert report["attempts"][0]["ranks"][1]["signal"] == signal.SIGKILL


@pytest.fixture
def small_group(tmp_path: Path) -> Iterator[Path]:
    """The file by which a process joins a control group of 700 MB."""
    second = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    root = Path("/sys/fs/cgroup" if second else "/sys/fs/cgroup/memory")
    group = root / f"ddpdoctor-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.max" if second else "memory.limit_in_bytes")).write_text(str(700 << 20))
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")
    yield group / "cgroup.procs"
    psutil.wait_procs(living(tmp_path), 60)
    group.rmdir()


def test_a_rank_that_the_kernel_has_killed_for_want_of_memory_is_told_so(
    ended, tmp_path: Path, small_group: Path
) -> None:
    code, _, err = ended(ranks(2, "starved"), *AS_JSON, GROUP=str(small_group))
    assert code != 0
    finding = report_of(tmp_path)["findings"][0]
    assert finding["ranks"] == [1], err
    told = (finding["cause"], *finding["evidence"])
    assert any("memory" in line for line in told), "the kernel's own words, or its count"


@pytest.mark.parametrize("forgotten", first_of([True, False]))
def test_a_rank_that_is_killed_is_named_though_its_launcher_reaps_it_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgotten: bool
) -> None:
    if forgotten:  # as by kernels before 6.15
        monkeypatch.setattr("ddpdoctor.run.fates._code", lambda *_: None)
    (tmp_path / "run").mkdir()
    session = watched(tmp_path, tmp_path / "run", monkeypatch, two_ranks("killed_later"))
    assert session.status == 128 + signal.SIGKILL
    (finding,) = session.findings
    assert finding.ranks == (1,)
    assert "SIGKILL" in finding.cause


def test_a_rank_that_leaves_is_named_if_another_was_ended_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    session = watched(tmp_path, tmp_path / "run", monkeypatch, two_ranks("left"))
    assert [finding.ranks for finding in session.findings] == [(1,)]


@pytest.mark.thorough
@pytest.mark.parametrize(("what", "found"), [("left", [[1]]), ("both_fail", [])])
def test_it_is_named_if_torchrun_has_ended_another_for_it(
    ended, tmp_path: Path, what: str, found: list[list[int]]
) -> None:
    command = ["torchrun", "--standalone", "--nproc-per-node=2", str(JOB), what]
    code, _, _ = ended(command, *AS_JSON)
    assert code == 1
    assert [finding["ranks"] for finding in report_of(tmp_path)["findings"]] == found


def test_a_proof_is_forgotten_when_the_job_goes_on_after_all(ended, tmp_path: Path) -> None:
    code, out, err = ended(ranks(2, "recovers"), "--keep-going", *AS_JSON)
    assert code == 0
    assert out.splitlines() == ["well, then not"] * 2
    assert "proven" in err, "told while it lasted"
    assert report_of(tmp_path)["findings"] == []


def test_ranks_that_outlive_their_launcher_are_told_and_left_alone(
    start: Doctor, tmp_path: Path
) -> None:
    process = start(ranks(2, "long"))
    _wait_for(tmp_path / "pid-0", tmp_path / "pid-1")
    _ranks_of(tmp_path)[0].parent().kill()
    process.wait(ENDLESS)
    ranks_left = living(tmp_path)
    assert process.returncode == 128 + signal.SIGKILL
    assert len(ranks_left) == 2
    (tmp_path / "enough").touch()
    _wait_for(tmp_path / "ended-0", tmp_path / "ended-1")
    psutil.wait_procs(ranks_left, 60)
    _, err = process.communicate()
    assert "2 of its ranks go on" in err


@pytest.mark.thorough
def test_what_a_job_does_to_its_own_process_is_not_disturbed(ended, tmp_path: Path) -> None:
    # Python 3.12 warns of a fork where there are threads, as torch's own.
    code, out, err = ended(
        interpreters(2, "odd"), *AS_JSON, PYTHONWARNINGS="ignore::DeprecationWarning"
    )
    assert code == 1
    assert sorted(out.splitlines()) == ["rank 0 trained", "rank 1 trained"]
    assert "my own excepthook" in err.splitlines()[0]
    (finding,) = report_of(tmp_path)["findings"]
    assert finding["ranks"] == [1]
    assert "after all" in finding["cause"]


@pytest.mark.thorough
def test_a_program_that_replaces_itself_is_watched_as_what_it_becomes(ended, tmp_path) -> None:
    code, _, err = ended(interpreters(2, "replaced"), *AS_JSON)
    assert (code, err) == (0, "")
    assert report_of(tmp_path)["attempts"][0]["world_size"] == 2


@pytest.mark.thorough
def test_attempts_are_told_apart(ended, tmp_path: Path) -> None:
    command = ["torchrun", "--standalone", "--nproc-per-node=2", "--max-restarts=1", str(JOB)]
    code, _, _ = ended([*command, "sometimes"], *AS_JSON)
    assert code == 0, "the job has recovered"
    report = report_of(tmp_path)
    assert [attempt["name"][:9] for attempt in report["attempts"]] == ["attempt-0", "attempt-1"]
    (finding,) = report["findings"]
    assert finding["severity"] == "warning"
    assert "the first time" in finding["cause"]


def test_a_port_that_is_taken_is_named_though_no_rank_is_ever_started(
    ended, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        command = ["torchrun", f"--master-port={port}", "--nproc-per-node=2", str(JOB), "well"]
        code, _, _ = ended(command, *AS_JSON)
    assert code != 0
    assert [finding["code"] for finding in report_of(tmp_path)["findings"]] == ["DDP104"]


_MEETING = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}


def watched(
    tmp_path: Path,
    run_dir: Path | None,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str] | None = None,
) -> Session:
    """A job of two ranks, by default well, whose evidence goes where the test has made a trap."""
    for name, value in environment(tmp_path, _MEETING).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    options = RunOptions(command or ranks(2, "well_by_hand"), run_dir)
    with Signals() as signals:
        return run(options, signals, Audience())


def two_ranks(what: str) -> list[str]:
    """As mpirun does it: the first rank to fail is reaped at once, and the others are ended."""
    return [sys.executable, "-c", _TWO_RANKS, str(JOB), what]


_TWO_RANKS = """
import os, signal, subprocess, sys
command = ["python", *sys.argv[1:]]
ranks = [subprocess.Popen(command, env={**os.environ, "RANK": rank}) for rank in "01"]
for _ in ranks:
    pid, status = os.wait()
    if status:
        for rank in ranks:
            if rank.pid != pid:
                rank.terminate()
                rank.wait()
        code = os.waitstatus_to_exitcode(status)
        sys.exit(code if code > 0 else 128 - code)
"""


def test_a_full_disk_does_not_reach_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run" / f"attempt-0-{_MEETING['MASTER_PORT']}"
    folder.mkdir(parents=True)
    for rank in (0, 1):
        (folder / f"rank-{rank}.log").symlink_to("/dev/full")
    session = watched(tmp_path, tmp_path / "run", monkeypatch)
    assert session.status == 0
    assert session.findings == []
    assert "is the disk full?" in session.not_seen[0]


@pytest.mark.parametrize("trap", first_of(["file", "gone"]))
def test_a_run_directory_that_cannot_be_written_does_not_reach_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trap: str
) -> None:
    run_dir = tmp_path / "run"
    if trap == "file":
        run_dir.write_text("not a folder")
    session = watched(tmp_path, run_dir, monkeypatch)
    assert (session.status, session.findings) == (0, [])
    told = ["nothing could be written anywhere, so the job was not watched"]
    assert session.not_seen == told


@pytest.mark.thorough
def test_a_fault_of_the_doctors_own_does_not_reach_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(evidence: object, faults: list[str]) -> None:
        raise RuntimeError("a detector has a bug")

    (tmp_path / "run").mkdir()
    monkeypatch.setattr("ddpdoctor.run.worlds.diagnose", fail)
    session = watched(tmp_path, tmp_path / "run", monkeypatch)
    assert session.status == 0
    told = "a fault of ours ended the watching: RuntimeError: a detector has a bug"
    assert session.not_seen == [told]


def test_a_report_that_cannot_be_written_in_the_end_does_not_change_the_exit_code(
    ended, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    command = ["bash", "-c", "rmdir out && exit 5"]
    code, _, err = ended(command, "--output=out/report.json", "--format=json")
    assert code == 5
    assert "cannot write out/report.json: No such file" in err.splitlines()[-1]


@pytest.mark.thorough
def test_a_switched_off_watch_is_told(ended) -> None:
    code, _, err = ended(ranks(2, "well_by_hand"), DDPDOCTOR_DISABLE="1")
    assert code == 0
    assert "DDPDOCTOR_DISABLE" in err


@pytest.mark.thorough
def test_a_torch_that_cannot_be_imported_is_told_and_who_knows_more(ended, tmp_path: Path) -> None:
    (tmp_path / "rank.py").write_text("import torch")
    torchrun = ["torchrun", "--nproc-per-node=2", "rank.py"]
    for command in (torchrun, [sys.executable, "rank.py"]):
        code, _, err = ended(command, TORCH_LOGS="+nonsense")
        assert code == 1
        assert "importing torch did not come to its end: `ddpdoctor env`" in err
        assert "no process that uses torch" not in err


@pytest.mark.parametrize(
    ("script", "error", "line"),
    [
        (None, "FileNotFoundError: [Errno 2] No such file or directory: 'rank.py'", ""),
        ("def f(:\n", "SyntaxError: invalid syntax (rank.py, line 1)", "rank.py:1"),
        (
            "import os\nimport no_such\n",
            "ModuleNotFoundError: No module named 'no_such'",
            "rank.py:2",
        ),
    ],
)
def test_what_ends_ranks_before_they_import_torch_is_told(
    ended, tmp_path: Path, script: str | None, error: str, line: str
) -> None:
    if script is not None:
        (tmp_path / "rank.py").write_text(script)
    launched = [sys.executable, str(HERE / "launch.py"), "2", "rank.py"]
    for command, numbers in ((launched, [0, 1]), ([sys.executable, "rank.py"], [0])):
        code, _, err = ended(command, *AS_JSON)
        assert code == (1 if script else 2)
        assert "not seen" not in err
        report = report_of(tmp_path)
        (finding,) = report["findings"]
        assert (finding["code"], finding["cause"]) == ("DDP100", error)
        assert finding["ranks"] == numbers
        assert line in err
        assert [rank["exit_code"] for rank in report["attempts"][-1]["ranks"]] == [code] * len(
            numbers
        )


def test_a_helper_that_failed_is_not_what_ended_a_job(ended, tmp_path: Path) -> None:
    script = "python -c 'import no_such' || true; exit"
    code, _, err = ended(["bash", "-c", f"{script} 0"], *AS_JSON)
    assert code == 0
    assert report_of(tmp_path)["findings"] == []
    code, _, err = ended(["bash", "-c", f"{script} 3"], *AS_JSON)
    assert code == 3
    assert report_of(tmp_path)["findings"] == []
    assert "the job failed: it ended with exit code 3; nothing else was found" in err


def test_an_error_that_somebody_told_and_went_on_from_is_not_what_ended_a_job(
    ended, tmp_path: Path
) -> None:
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert False\n")
    code, _, _ = ended(["python", "-m", "pytest", "-q", "test_it.py"], *AS_JSON)
    assert code == 1
    report = report_of(tmp_path)
    assert report["findings"] == []
    assert report["failure"] == "the job failed: it ended with exit code 1"


@pytest.mark.thorough
def test_accelerate_that_trains_on_one_process_gets_a_word(ended) -> None:
    command = ["accelerate", "launch", "--cpu", "--num_processes=1", str(JOB), "alone"]
    _, _, err = ended(command)
    said = " ".join(err.split())
    assert "accelerate launch has started one process, which trained alone" in said
    assert "`torchrun --nproc-per-node=N` does" in said, "it was given --num_processes"


def test_the_users_own_sitecustomize_is_run(ended, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys; sys.mine = 'mine'")
    script = "import sys, sitecustomize; print(sys.mine, sitecustomize.__file__)"
    _, out, _ = ended(["python", "-c", script], PYTHONPATH=str(own))
    assert out == f"mine {own}/sitecustomize.py\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--format=json", "--", "true"], "-o FILE"),
        (["--", "no-such-command"], "no command 'no-such-command'"),
        (["--", "./no-program"], "cannot start './no-program': Permission denied"),
        (["--run-dir", "a/new/one", "--", "no-such-command"], "no command 'no-such-command'"),
        (["--run-dir", "own", "--", "no-such-command"], "no command 'no-such-command'"),
        (["-o", "missing/report", "--", "true"], "missing/report"),
        ([], "COMMAND"),
        (["--run-dir", "taken", "--", "true"], "another run"),
        (["--run-dir", "file", "--", "true"], "file"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    (tmp_path / "taken" / "attempt-0-0").mkdir(parents=True)
    (tmp_path / "file").touch()
    (tmp_path / "no-program").touch()
    (tmp_path / "own").mkdir()
    before = sorted(tmp_path.rglob("*"))
    done = subprocess.run(
        [sys.executable, "-m", "ddpdoctor", "run", *arguments],
        cwd=tmp_path,
        env=environment(tmp_path, {}),
        capture_output=True,
        text=True,
        timeout=ENDLESS,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert complaint in done.stderr
    assert sorted(tmp_path.rglob("*")) == before, "and nothing is left behind"
    assert len(done.stderr.splitlines()) == 1


def test_the_report_goes_elsewhere_where_the_working_directory_cannot_be_written(
    ended, tmp_path: Path
) -> None:
    (tmp_path / "reports").write_text("a file of mine")
    code, _, err = ended(ranks(2, "killed"), XDG_STATE_HOME=str(tmp_path / "state"))
    assert code != 0
    assert str(tmp_path / "state" / "ddpdoctor") in "".join(err.split())
    assert (tmp_path / "reports").read_text() == "a file of mine"


def _ranks_of(folder: Path) -> list[psutil.Process]:
    found = []
    for each in living(folder):
        with contextlib.suppress(psutil.Error):
            if each.cmdline()[1:2] == each.parent().cmdline()[1:2] == [str(JOB)]:
                found.append(each)
    return found


def _wait_for(*files: Path) -> None:
    assert within(60, lambda: all(file.exists() for file in files)), f"{[*map(str, files)]}"


_TRAINER = """
import os, threading, time, traceback

def fit(train, tries):
    def work():
        for _ in range(tries):
            try:
                return train()
            except Exception:
                told.append(traceback.format_exc())
    told = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if len(told) == tries:
        time.sleep(0.2)
        os.kill(os.getpid(), 15)
"""
_SCRIPT = """
import os, sys
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import trainer

tried = []

def train():
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    tried.append(1)
    if len(tried) == 1:
        raise ValueError("a bad sample")  # here

dist.init_process_group("gloo")
trainer.fit(train, tries=int(sys.argv[1]))
dist.destroy_process_group()
"""


@pytest.mark.parametrize("tries", first_of([1, 2]))
def test_what_a_trainer_catches_ends_a_rank_only_if_it_does_not_try_again(
    ended, tmp_path: Path, tries: int
) -> None:
    library = tmp_path / "site-packages"  # as Ray's workers do it
    library.mkdir()
    (library / "trainer.py").write_text(_TRAINER)
    (tmp_path / "job.py").write_text(_SCRIPT)
    command = [sys.executable, str(HERE / "launch.py"), "2", "job.py", str(tries)]
    code, _, err = ended(command, *AS_JSON, PYTHONPATH=str(library))
    findings = report_of(tmp_path)["findings"]
    if tries == 2:
        assert (code, findings) == (0, []), err
        return
    assert code == signal.SIGTERM, "as the launcher says it"
    (finding,) = findings
    assert (finding["ranks"], finding["cause"]) == ([0, 1], "ValueError: a bad sample")
    place = finding["places"][0]["place"]
    assert _SCRIPT.splitlines()[place["line"] - 1].endswith("# here")
