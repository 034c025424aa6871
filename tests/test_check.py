"""The main job: a pitfall reproduced and recognised, and its advice put to the test."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import count
from pathlib import Path

import pytest

import ddpdoctor.check
from ddpdoctor import catalog
from ddpdoctor.catalog import Pitfall, Verdict
from ddpdoctor.check import CheckOptions, check
from ddpdoctor.check.telling import CheckReport, told
from ddpdoctor.launch import ForkServer, Job, LaunchError, NoRoom, WorkerGroup
from ddpdoctor.report.gravity import FailOn
from ddpdoctor.trial import DEADLINE

EXPECTED = {
    "DDP101": {
        "set_up_before_parsing": "recognised",
        "parse_before_setting_up": "holds",
        "parse_and_freeze_at_the_entry": "holds",
    },
}


@pytest.fixture(scope="module", autouse=True)
def _one_server() -> Iterator[None]:
    """The server that all these checks start their ranks from: torch is imported once."""
    with ForkServer(ddpdoctor.check._PRELOAD) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(ddpdoctor.check, "ForkServer", lambda *_, **__: nullcontext(server))
        yield


@pytest.fixture
def own_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user has it: what a check starts ranks from is its own, and ends with it."""
    monkeypatch.setattr(ddpdoctor.check, "ForkServer", ForkServer)


def descriptors() -> list[str]:
    """What this process has open."""
    found = []
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # that of the listing itself
            found.append(str(each.readlink()))
    return sorted(found)


def run(pitfalls: list[Pitfall], **options: object) -> CheckReport:
    return check(pitfalls, CheckOptions(**options), lambda _: None, lambda *_: None)  # type: ignore[arg-type]


def reproducer(folder: Path, body: str, *, launches: int = 1) -> Pitfall:
    """A pitfall of the test's own: DDP101's diagnosis, on code that the test writes."""
    proof = folder / "made_up.py"
    proof.write_text(
        "import os, sys, time\n"
        "from ddpdoctor.reproducer import broken, documented, fix\n"
        f"def setup_distributed(config):\n    return config.distributed  # <-- DDP101\n{body}\n",
        encoding="utf-8",
    )
    real = catalog.load()["DDP101"]
    variants = tuple(catalog.variants_of(proof, "DDP101"))
    return real.model_copy(update={"proof": proof, "variants": variants})


def verdict(folder: Path, body: str) -> Verdict:
    (found,) = run([reproducer(folder, body)], nproc=2).verdicts
    return found


def test_a_broken_form_that_is_named_on_its_ranks_and_line_is_recognised(tmp_path: Path) -> None:
    found = verdict(tmp_path, '@broken()\ndef f():\n    """it"""\n    setup_distributed({})')
    assert found.status == "recognised"
    assert not found.is_problem
    assert found.findings[0].ranks == (0, 1)


def test_the_right_name_on_an_unmarked_line_is_not_recognised(tmp_path: Path) -> None:
    body = 'def set_up(c):\n    c.rank\n@broken()\ndef f():\n    """it"""\n    set_up({})'
    found = verdict(tmp_path, body)
    assert found.findings[0].code == "DDP101"
    assert found.status == "misdiagnosed"
    assert found.is_problem


def test_the_right_name_on_the_wrong_ranks_is_not_recognised(tmp_path: Path) -> None:
    body = '@broken(ranks=(1,))\ndef f():\n    """it"""\n    setup_distributed({})'
    assert verdict(tmp_path, body).status == "misdiagnosed"


def test_a_rank_that_was_killed_beside_the_failure_is_spoken_of(tmp_path: Path) -> None:
    body = (
        '@broken()\ndef f():\n    """it"""\n'
        '    os.environ["RANK"] == "0" and os.kill(os.getpid(), 9)\n    setup_distributed({})'
    )
    found = verdict(tmp_path, body)
    assert found.status == "misdiagnosed"
    assert "rank 0" in found.evidence
    assert "SIGKILL" in found.evidence


def test_another_failure_than_the_expected_is_not_recognised(tmp_path: Path) -> None:
    found = verdict(tmp_path, '@broken()\ndef f():\n    """it"""\n    raise KeyError("x")')
    assert found.status == "misdiagnosed"
    assert "KeyError" in found.evidence


def test_a_broken_form_that_runs_well_does_not_reproduce_and_is_no_problem(tmp_path: Path) -> None:
    found = verdict(tmp_path, '@broken(launches=2)\ndef f():\n    """it"""')
    assert (found.status, found.launches, found.failed_launches) == ("not reproduced", 2, 0)
    assert not found.is_problem


def test_a_race_is_launched_until_it_fails_and_told_as_k_of_n(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    body = (
        '@broken(launches=3)\ndef f():\n    """it"""\n'
        f"    import pathlib\n    flag = pathlib.Path({str(flag)!r} + os.environ['RANK'])\n"
        "    if flag.exists():\n        setup_distributed({})\n    flag.touch()"
    )
    found = verdict(tmp_path, body)
    assert (found.status, found.launches, found.failed_launches) == ("recognised", 2, 1)


@pytest.mark.parametrize(
    ("kind", "statement", "status", "problem"),
    [
        ("documented(source='x')", "pass", "holds", False),
        ("documented(source='x')", "raise ValueError('no')", "fails", False),
        ("documented(source='x')", "assert False, 'half the samples'", "fails", False),
        ("fix()", "pass", "holds", False),
        ("fix()", "raise ValueError('no')", "fails", True),
        ("fix()", "sys.exit(3)", "fails", True),
        ("fix()", "os.kill(os.getpid(), 11)", "fails", True),
        ("fix()", "os._exit(0 if os.environ['RANK'] == '0' else 7)", "fails", True),
    ],
)
def test_advice_and_fixes_hold_only_if_every_rank_ends_well(
    tmp_path: Path, kind: str, statement: str, status: str, problem: bool
) -> None:
    found = verdict(tmp_path, f'@{kind}\ndef f():\n    """it"""\n    {statement}')
    assert (found.status, found.is_problem) == (status, problem)


def test_a_broken_assertion_is_told_in_its_own_words(tmp_path: Path) -> None:
    body = '@fix()\ndef f():\n    """it"""\n    assert False, "half the samples"'
    assert verdict(tmp_path, body).evidence.startswith("half the samples (ranks 0, 1 at made_up")


def test_without_gpus_nccl_is_not_checked_rather_than_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ddpdoctor.check.visible", lambda: ("0",))
    report = run([catalog.load()["DDP101"]], nproc=2, backend="nccl")
    assert {v.status for v in report.verdicts} == {"not checked"}
    assert report.exit_code(FailOn.warning, asked_by_name=True) == 3
    assert report.exit_code(FailOn.warning, asked_by_name=False) == 0


def test_without_numpy_no_fix_is_blamed_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ddpdoctor.check.find_spec", lambda name: None)
    with pytest.raises(LaunchError, match="pip install numpy"):
        run([catalog.load()["DDP101"]], nproc=2)


def test_the_evidence_is_kept_where_it_was_asked_for(tmp_path: Path) -> None:
    run([catalog.load()["DDP101"]], nproc=2, run_dir=tmp_path / "kept")
    logs = list((tmp_path / "kept").rglob("rank-0.log"))
    assert len(logs) == len(catalog.load()["DDP101"].variants)


def read_too_early(folder: Path) -> Pitfall:
    """A failure that ranks leave no trace of: the source alone shows it."""
    proof = folder / "made_up.py"
    proof.write_text(
        "from ddpdoctor.reproducer import broken, fix\n"
        "from pathlib import Path\n"
        "import torch\n"
        "import torch.distributed as dist\n"
        '@broken()\ndef f():\n    """it"""\n'
        '    dist.init_process_group("gloo")\n'
        "    number = torch.ones(1)\n"
        "    work = dist.all_reduce(number, async_op=True)  # <-- DDP414\n"
        "    early = number.item()\n"
        "    dist.barrier()\n"
        '    assert early == 0, "read too early"\n',
        encoding="utf-8",
    )
    real = catalog.load()["DDP101"]
    variants = tuple(catalog.variants_of(proof, "DDP414"))
    return real.model_copy(update={"code": "DDP414", "proof": proof, "variants": variants})


def test_what_ranks_leave_no_trace_of_is_recognised_by_its_source(tmp_path: Path) -> None:
    (found,) = run([read_too_early(tmp_path)], nproc=2).verdicts
    assert found.status == "recognised"
    assert found.evidence.startswith("read off made_up.py:10: ")
    assert "read too early" in found.evidence


def test_what_the_source_alone_shows_is_not_recognised_where_ranks_could_write_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ddpdoctor.check.is_full", lambda folder: True)
    (found,) = run([read_too_early(tmp_path)], nproc=2).verdicts
    assert found.status == "not checked"


def test_advice_that_promises_no_cure_is_not_blamed_for_being_none(tmp_path: Path) -> None:
    body = (
        '@documented(source="x", promises="an aid")\ndef f():\n    """it"""\n'
        "    setup_distributed({})\n"
        '@documented(source="x")\ndef g():\n    """it"""\n    setup_distributed({})\n'
        '@documented(source="x", promises="an aid")\ndef h():\n    """it"""\n'
    )
    report = run([reproducer(tmp_path, body)], nproc=2)
    assert [v.status for v in report.verdicts] == ["aid", "fails", "holds"]
    assert (report.summary.advice_aids, report.summary.problems) == (1, 0)


def test_advice_about_another_backend_is_not_checked(tmp_path: Path) -> None:
    body = '@documented(source="x", speaks_of="nccl")\ndef f():\n    """it"""\n    1 / 0\n'
    (found,) = run([reproducer(tmp_path, body)], nproc=2).verdicts
    assert found.status == "not checked"
    assert found.evidence == "it speaks of nccl, and the ranks here are on gloo"


def test_what_rank_0_measured_is_told_with_the_verdict(tmp_path: Path) -> None:
    body = (
        "from ddpdoctor.reproducer import measured\n"
        '@fix()\ndef f():\n    """it"""\n    measured("4 all-reduces, not 8")'
    )
    told = verdict(tmp_path, body).evidence
    assert told == "all 2 ranks ended well, every assertion held; measured: 4 all-reduces, not 8"


def test_a_variant_that_names_a_command_is_started_by_it_and_watched(tmp_path: Path) -> None:
    body = (
        # torchrun ends the other rank, maybe before it has failed as well
        '@broken(ranks="any", launch="torchrun --nproc-per-node={nproc} {proof} {variant}")\n'
        'def f():\n    """it"""\n    import torch\n    setup_distributed({})\n'
        "from ddpdoctor.reproducer import main\n"
        'if __name__ == "__main__":\n    main()'
    )
    found = verdict(tmp_path, body)
    assert (found.status, found.findings[0].code) == ("recognised", "DDP101")


def test_a_command_that_fails_before_there_is_a_rank_is_told_by_what_it_printed(
    tmp_path: Path,
) -> None:
    body = (
        '@documented(source="x", launch="python {proof} {variant}")\n'
        'def f():\n    """it"""\n    raise OSError("[Errno 98] Address already in use")\n'
        '@fix(launch="python {proof} {variant}")\ndef g():\n    """it"""\n    import torch\n'
        '    assert "RANK" not in os.environ, "it is no rank"\n'
        '@documented(source="x", launch="nothing-of-this-name")\ndef h():\n    """it"""\n'
        "from ddpdoctor.reproducer import main\n"
        'if __name__ == "__main__":\n    main()'
    )
    failed, good, missing = run([reproducer(tmp_path, body)], nproc=2).verdicts
    assert (failed.status, failed.findings[0].code) == ("fails", "DDP104")
    assert (good.status, good.evidence) == ("holds", "it ended well, every assertion held")
    assert missing.status == "not checked"
    assert missing.evidence == "there is no command 'nothing-of-this-name'"


def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    body = (
        '@fix(launch="python {proof} {variant}")\ndef f():\n    """it"""\n'
        "    import subprocess, pathlib, torch\n"
        "    left = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        f"    pathlib.Path({str(note)!r}).write_text(str(left.pid))\n"
        "from ddpdoctor.reproducer import main\n"
        'if __name__ == "__main__":\n    main()'
    )
    assert verdict(tmp_path, body).status == "holds"
    assert not Path(f"/proc/{note.read_text()}").exists()


def test_quick_leaves_out_advice_and_what_a_launcher_starts_and_counts_it(tmp_path: Path) -> None:
    body = (
        '@broken()\ndef f():\n    """it"""\n    setup_distributed({})\n'
        '@fix(launch="torchrun {proof} {variant}")\ndef g():\n    """it"""\n'
        '@fix()\ndef h():\n    """it"""\n'
        '@documented(source="somebody")\ndef i():\n    """it"""\n'
    )
    report = run([reproducer(tmp_path, body)], nproc=2, suite="quick")
    assert {v.variant for v in report.verdicts} == {"f", "h"}
    assert report.left_out == 2
    assert "2 left out by --suite quick" in told(report).verdict


def test_a_pitfall_that_needs_namespaces_says_why_it_cannot_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ddpdoctor.check._without", lambda what: f"no {what}: EPERM")
    pitfall = reproducer(tmp_path, '@broken()\ndef f():\n    """it"""')
    (found,) = run([pitfall.model_copy(update={"needs": ("namespaces",)})], nproc=2).verdicts
    assert (found.status, found.evidence) == ("not checked", "no namespaces: EPERM")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, of which it takes a part away")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv of util-linux")
def test_root_of_a_container_is_told_what_it_may_not_and_blamed_for_nothing() -> None:
    as_in_docker = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    check = [sys.executable, "-m", "ddpdoctor", "check", "--nproc=2", "--select=DDP108,DDP604"]
    ran = subprocess.run(
        [*as_in_docker, *check, "--format=json"], capture_output=True, text=True, timeout=300
    )
    rows = [row for group in json.loads(ran.stdout)["groups"] for row in group["rows"]]
    seen = {(row[1], row[3].partition(",")[0]) for row in rows}
    assert seen == {
        ("not checked", "needs network namespaces"),
        ("not checked", "needs a mount namespace"),
    }
    assert ran.returncode == 3, ran.stderr


@pytest.mark.thorough
@pytest.mark.usefixtures("own_server")
def test_launches_that_are_over_keep_nothing_open(tmp_path: Path) -> None:
    body = "".join(f'@fix()\ndef f{n}():\n    """fix {n}"""\n' for n in range(6))
    opened: list[int] = []
    gc.collect()  # what earlier tests have left
    before = descriptors()
    check(
        [reproducer(tmp_path, body)],
        CheckOptions(nproc=2, jobs=1),
        lambda _: opened.append(len(descriptors())),
        lambda *_: None,
    )
    assert max(opened) - min(opened) < 3, opened
    gc.collect()
    assert descriptors() == before, "nor does the server"


@pytest.mark.usefixtures("own_server")
def test_what_ranks_did_that_were_killed_with_their_keeper_is_not_known(tmp_path: Path) -> None:
    body = (
        '@fix()\ndef f():\n    """it"""\n    import os, signal, time\n'
        "    keeper = f'/proc/{os.getppid()}/stat'\n"
        "    while open(keeper).read().rpartition(')')[2].split()[0] != 'S':\n"
        "        time.sleep(0.01)  # until it has said that all have started, and waits\n"
        "    os.kill(os.getppid(), signal.SIGKILL)\n    time.sleep(60)\n"
    )
    found = verdict(tmp_path, body)
    assert (found.status, found.evidence) == (
        "not checked",
        "the keeper was killed, and its ranks with it",
    )


@pytest.mark.parametrize("want", ["disk", "memory"])
def test_ranks_that_fail_where_the_machine_ran_out_of_something_prove_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, want: str
) -> None:
    if want == "disk":
        monkeypatch.setattr("ddpdoctor.check.is_full", lambda folder: True)
    else:
        kills = count()
        monkeypatch.setattr("ddpdoctor.check.kills_for_memory", lambda: next(kills))
    body = '@fix()\ndef f():\n    """it"""\n    raise ValueError("no")\n'
    aid = (
        '@documented(source="x", promises="an aid")\ndef g():\n    """it"""\n    raise ValueError\n'
    )
    held = '@fix()\ndef h():\n    """it too"""\n'
    failed, aided, well = run([reproducer(tmp_path, body + aid + held)], nproc=2).verdicts
    assert (failed.status, aided.status, well.status) == ("not checked", "not checked", "holds")
    assert {"disk": "no room left", "memory": "memory was short"}[want] in failed.evidence


def test_ranks_that_hang_and_can_write_no_more_are_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ddpdoctor.check.is_full", lambda folder: True)
    monkeypatch.setattr("ddpdoctor.check._LONG", 0.5)
    body = '@fix()\ndef f():\n    """it"""\n    import time\n    time.sleep(600)\n'
    found = verdict(tmp_path, body)
    assert (found.status, "no room left" in found.evidence) == ("not checked", True), found
    assert found.seconds < DEADLINE


@pytest.mark.parametrize(
    "wants",
    [
        "torch.empty(1 << 44)",
        "bytearray(1 << 44)",
        "torch.nn.Linear(1 << 21, 1 << 21)",
        "threading.stack_size(1 << 36), threading.Thread(target=print).start()",
    ],
)
def test_a_rank_that_is_refused_memory_or_a_thread_proves_nothing(
    tmp_path: Path, wants: str
) -> None:
    body = (
        '@fix()\ndef f():\n    """it"""\n    import resource, threading\n    import torch\n'
        "    resource.setrlimit(resource.RLIMIT_AS, (1 << 36, 1 << 36))\n"
        f"    {wants}\n"
    )
    failed = verdict(tmp_path, body)
    assert (failed.status, "refused" in failed.evidence) == ("not checked", True), failed


TORN_DOWN = (
    '@fix()\ndef f():\n    """it"""\n    import torch.distributed as dist\n'
    "    dist.init_process_group('gloo')\n    dist.barrier()\n    dist.destroy_process_group()\n"
    "    again = os.path.exists('{seen}')\n    open('{seen}', 'a').close()\n"
    "    {when} or os.abort()\n"
)


def test_what_torchs_own_teardown_failed_is_launched_again(tmp_path: Path) -> None:
    found = verdict(tmp_path, TORN_DOWN.format(seen=tmp_path / "seen", when="again"))
    assert (found.status, found.launches, found.failed_launches) == ("holds", 1, 0), found


def test_what_torchs_teardown_fails_each_time_does_not_hold(tmp_path: Path) -> None:
    found = verdict(tmp_path, TORN_DOWN.format(seen=tmp_path / "seen", when="False"))
    assert (found.status, {each.code for each in found.findings}) == ("fails", {"DDP419"}), found


@pytest.mark.parametrize(("got", "status"), [(1.0, "fails"), (0.001, "holds")])
def test_ranks_are_given_the_time_that_others_took_of_the_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, got: float, status: str
) -> None:
    monkeypatch.setattr("ddpdoctor.trial.DEADLINE", 0.2)
    monkeypatch.setattr("ddpdoctor.trial.share", lambda pids: got if list(pids) else 1.0)
    body = (
        '@fix()\ndef f():\n    """it"""\n    import torch.distributed as dist\n'
        "    dist.init_process_group('gloo')\n    time.sleep(1)\n    dist.barrier()\n"
    )
    assert verdict(tmp_path, body).status == status


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """There is no room for the second launch when it is asked for, nor for it once more."""
    asked = count()

    def launch(server: ForkServer, job: Job) -> WorkerGroup:
        if next(asked) in (1, 2):
            raise NoRoom("2 ranks need more than there is")
        return launched(server, job)

    launched = ForkServer.launch
    monkeypatch.setattr(ForkServer, "launch", launch)
    return asked


def test_room_that_somebody_else_takes_for_a_moment_is_waited_for(
    tmp_path: Path, asked: Iterator[int]
) -> None:
    body = "".join(f'@fix()\ndef f{n}():\n    """fix {n}"""\n' for n in range(2))
    report = run([reproducer(tmp_path, body)], nproc=2, jobs=1)
    assert [verdict.status for verdict in report.verdicts] == ["holds", "holds"]
    assert next(asked) == 4


def test_room_for_another_launch_of_the_same_is_waited_for(
    tmp_path: Path, asked: Iterator[int]
) -> None:
    body = '@fix(launches=2)\ndef f():\n    """it"""\n'
    report = run([reproducer(tmp_path, body)], nproc=2)
    assert [(each.status, each.launches) for each in report.verdicts] == [("holds", 2)]
    assert next(asked) == 4


def test_room_for_another_launch_is_waited_for_as_long_as_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, others = count(), tmp_path / "others"

    def launch(server: ForkServer, job: Job) -> WorkerGroup:
        if next(asked) > 1 and not others.exists():
            raise NoRoom("others have it")
        return launched(server, job)

    launched = ForkServer.launch
    monkeypatch.setattr(ForkServer, "launch", launch)
    monkeypatch.setattr(ddpdoctor.check, "_PATIENCE", 0.2)
    body = (
        '@fix(launches=2)\ndef f():\n    """it"""\n'
        '@fix()\ndef g():\n    """another"""\n'
        f"    import pathlib\n    time.sleep(1)\n    pathlib.Path({str(others)!r}).touch()\n"
    )
    report = run([reproducer(tmp_path, body)], nproc=2, jobs=2)
    assert [(each.status, each.launches) for each in report.verdicts] == [
        ("holds", 2),
        ("holds", 1),
    ]
