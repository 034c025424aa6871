"""The command line: what each command prints, where, and with which exit code.

`check` itself is replaced by one that gives the verdicts asked for: no ranks are started here.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import typer
from typer.main import get_command

import ddpdoctor.check
import ddpdoctor.environment
from ddpdoctor import __version__, catalog, cli
from ddpdoctor.catalog import Cure, Entry, Finding, Pitfall, Severity, Status, Verdict
from ddpdoctor.check.telling import CheckReport
from ddpdoctor.environment.model import Environment, EnvironmentReport, Python, Unknown
from ddpdoctor.launch import LaunchError
from ddpdoctor.report.model import Report
from tests.patience import ENDLESS

WELL: dict[str, Status] = {"broken": "recognised", "documented": "fails", "fix": "holds"}
Capture = pytest.CaptureFixture[str]


PYTHON = Python(version="3.11", implementation="CPython", executable="python", platform="Linux")
NOT_ASKED = dict.fromkeys(Environment.model_fields, Unknown(unknown="not asked"))
EMPTY_ENVIRONMENT = Environment.model_validate(
    {
        **NOT_ASKED,
        "python": PYTHON,
        "launchers": (),
        "context": (),
        "variables": (),
        "planned_ranks": None,
    }
)


class FakeCheck:
    """Stands in for `check`, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], ddpdoctor.check.CheckOptions]] = []
        self.statuses = dict(WELL)
        self.error: BaseException | None = None

    def __call__(
        self,
        pitfalls: Sequence[Pitfall],
        options: ddpdoctor.check.CheckOptions,
        on_verdict: Callable[[Verdict], None],
        on_start: Callable[[str, str], None],
    ) -> CheckReport:
        self.asked.append(([pitfall.code for pitfall in pitfalls], options))
        if self.error:
            raise self.error
        verdicts = []
        for pitfall in pitfalls:
            for variant in pitfall.variants:
                on_start(pitfall.code, variant.name)
                verdicts.append(
                    Verdict(
                        code=pitfall.code,
                        variant=variant.name,
                        kind=variant.kind,
                        status=self.statuses[variant.kind],
                        summary=variant.summary,
                        evidence="seen",
                        source=variant.source,
                    )
                )
                on_verdict(verdicts[-1])
        return CheckReport.of(
            pitfalls,
            verdicts,
            backend="gloo",
            nproc=options.nproc,
            started=datetime(2026, 1, 2, tzinfo=UTC),
            seconds=1.0,
        )


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeCheck:
    fake = FakeCheck()
    monkeypatch.setattr(ddpdoctor.check, "check", fake)
    return fake


def complaint(capsys: Capture) -> str:
    """The one line on stderr, where there is nothing on stdout."""
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ddpdoctor: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    return err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("check --nproc 0", "'--nproc'"),
        ("check --nproc abc", "'--nproc'"),
        ("check --nproc -4", "'--nproc'"),
        ("check --jobs 0", "--jobs"),
        (
            "check --format xml",
            "'xml' is not one of 'text', 'concise', 'json', 'junit', 'markdown', 'sarif', 'html'",
        ),
        ("check --backend mpi", "'mpi' is not one of"),
        ("check --suite slow", "'--suite': 'slow' is not one of 'all', 'quick'"),
        ("check --color sometimes", "'sometimes' is not one of"),
        ("check --select DDP999", "'DDP999'"),
        ("check --select DDP101,nonsense", "'nonsense'"),
        ("check --ignore DDP1011", "did you mean DDP101 (dict-config)"),
        ("check --select DDP5 --ignore DDP5", "nothing is left"),
        ("check --select ''", "a CODE is empty"),
        ("check --ignore ,", "a CODE is empty"),
        ("lint --select '' /dev/null", "a CODE is empty"),
        ("lint --format xml /dev/null", "'xml' is not one of 'text'"),
        ("check -o /proc/report.json", "cannot write /proc/report.json"),
        ("check -o .", "it is a folder"),
        ("check --run-dir /proc/runs", "cannot make the folder /proc/runs"),
        ("check --run-dir /dev/null", "cannot make the folder /dev/null: there is a file"),
        (
            "check -o /nowhere/at/all",
            "cannot write /nowhere/at/all: there is no folder /nowhere/at",
        ),
        ("check --bogus", "No such option: --bogus"),
        ("check extra", "extra"),
        ("explain", "name a code"),
        ("explain ''", "name a code"),
        ("explain DDP101 --all", "name a code"),
        ("explain DDP1011", "did you mean DDP101 (dict-config)"),
        ("explain ema-dedlock", "DDP504 (ema-deadlock)"),
        ("explain DDP101 --format html", "'html' is not one of 'text', 'json'"),
        ("explain DDP101 -o /proc/page.md", "cannot write /proc/page.md"),
        ("chekc", "chekc"),
        ("train", "say what to train: crystal"),
        ("train fish", "fish"),
        # What there is nothing to read of, or to act upon, by every command.
        ("lint /proc/none.py", "does not exist"),
        ("lint /proc/self/fdinfo", "no Python file"),
        ("lint ''", "a PATH is empty"),
        ("diagnose /proc/none", "cannot read /proc/none"),
        ("diagnose /proc/self/fdinfo", "no run of ours"),
        ("diagnose ''", "a PATH is empty"),
        ("attach 1073741824", "there is no process 1073741824"),
        (f"attach {10**20}", f"there is no process {10**20}"),
        ("attach -- -1", "there is no process -1"),
        ("attach --hosts ''", "--hosts '' is no list of hosts"),
        ("attach --hosts gpu[07-", "--hosts 'gpu[07-' is no list of hosts"),
        ("attach --hosts gpu[-]", "--hosts 'gpu[-]' is no list of hosts"),
        ("env --compare /proc/none /proc/neither", "/proc/none is no file"),
        ("env --fix --format json", "--fix prints commands"),
        ("probe --against /proc/none.json", "/proc/none.json is no file"),
        ("config", "launcher"),
        ("config torchrun --nproc none", "not none"),
        ("run", "COMMAND"),
        ("run -- there-is-none", "there is no command 'there-is-none'"),
        ("run -- ''", "there is no command ''"),
        ("run -- /proc", "cannot start '/proc': it is a folder"),
        ("run --keep-goin -- true", "there is no option --keep-goin"),
        ("predict", "say what to predict: crystal"),
        # What nothing can be written to is known before anything long is done.
        *(
            (f"{command} -o /proc/report.json {of_what}", "cannot write /proc/report.json")
            for command, of_what in (
                ("lint", "/dev/null"),
                ("diagnose", "/proc/none"),
                ("attach", ""),
                ("env", ""),
                ("probe", ""),
                ("config", "torchrun"),
                ("run", "-- true"),
            )
        ),
    ],
)
def test_a_mistake_is_one_line_and_exit_2_before_anything_is_run(
    fake: FakeCheck, capsys: Capture, arguments: str, message: str
) -> None:
    assert cli.run(shlex.split(arguments)) == 2
    assert message in complaint(capsys)
    assert fake.asked == []


def test_check_asks_for_what_was_said(fake: FakeCheck, capsys: Capture, tmp_path: Path) -> None:
    said = f"check --nproc 2 --backend gloo -j 3 --run-dir {tmp_path}/runs --select ddp5"
    assert cli.run([*said.split(), "--select", "dict-config, DDP201", "--ignore", "DDP501"]) == 0
    ((codes, options),) = fake.asked
    of_checkpoints = [code for code in catalog.load() if code.startswith("DDP5")]
    assert codes == ["DDP101", "DDP201", *(code for code in of_checkpoints if code != "DDP501")]
    assert (options.nproc, options.backend, options.jobs) == (2, "gloo", 3)
    assert options.run_dir == tmp_path / "runs"
    assert capsys.readouterr().err == ""


def test_check_alone_performs_everything_on_four_ranks(fake: FakeCheck) -> None:
    assert cli.run(["check"]) == 0
    ((codes, options),) = fake.asked
    assert codes == list(catalog.load())
    assert options == ddpdoctor.check.CheckOptions(
        nproc=4, backend="auto", suite="all", jobs=None, run_dir=None
    )
    assert cli.run(["check", "--suite", "quick"]) == 0
    assert fake.asked[-1][1].suite == "quick"


@pytest.mark.parametrize(
    ("statuses", "arguments", "code"),
    [
        ({}, "", 0),
        ({"fix": "fails"}, "", 1),
        ({"broken": "misdiagnosed"}, "", 1),
        ({"fix": "not checked"}, "", 0),
        ({"fix": "not checked"}, "--select DDP101", 3),
        ({"fix": "not checked"}, "--strict", 3),
        ({"broken": "not reproduced"}, "", 0),
        ({"broken": "not reproduced"}, "--select DDP101", 0),
        ({"broken": "not reproduced"}, "--strict", 3),
    ],
)
def test_the_exit_code_of_check(
    fake: FakeCheck, statuses: dict[str, Status], arguments: str, code: int
) -> None:
    fake.statuses |= statuses
    assert cli.run(["check", *arguments.split()]) == code


def test_what_is_not_checked_is_counted_and_told(fake: FakeCheck, capsys: Capture) -> None:
    fake.statuses["fix"] = "not checked"
    cli.run(["check", "--select", "DDP101"])
    out = " ".join(capsys.readouterr().out.split())
    assert "0 problems, 1 not checked" in out
    assert "Not checked: DDP101 " in out


def test_each_format_goes_to_stdout_and_nothing_else_does(fake: FakeCheck, capsys: Capture) -> None:
    def shown(format_: str) -> str:
        assert cli.run(["check", "--select", "DDP504", "--format", format_]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return out

    assert Report.model_validate_json(shown("json")).groups[0].title.startswith("DDP504")
    assert ElementTree.fromstring(shown("junit")).tag == "testsuites"
    assert shown("markdown").startswith("# ddpdoctor check\n")
    text = shown("text")
    assert text.startswith("ddpdoctor check: 4 ranks")
    assert "\x1b" not in text


def test_color_always_colours_and_the_environment_decides_otherwise(
    fake: FakeCheck, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def coloured(*arguments: str) -> bool:
        cli.run(["check", "--select", "DDP504", *arguments])
        return "\x1b[" in capsys.readouterr().out

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert coloured("--color", "always")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert coloured()
    assert not coloured("--color", "never")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured()


def test_a_report_is_written_to_its_file_alone(
    fake: FakeCheck, capsys: Capture, tmp_path: Path
) -> None:
    path = tmp_path / "report.json"
    assert cli.run(["check", "--format", "json", "-o", str(path)]) == 0
    assert Report.model_validate_json(path.read_text()).data["nproc"] == 4
    assert capsys.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == [path]


def test_what_makes_check_fail_is_told_beside_a_report_in_a_file(
    fake: FakeCheck, capsys: Capture, tmp_path: Path
) -> None:
    fake.statuses |= {"broken": "misdiagnosed"}
    assert cli.run(["check", "--select", "DDP504", "-o", str(tmp_path / "report.txt")]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"ddpdoctor: DDP504 broken \(.+\): NOT RECOGNISED.*\n", err)


def test_ranks_that_cannot_be_started_are_one_line(
    fake: FakeCheck, capsys: Capture, tmp_path: Path
) -> None:
    fake.error = LaunchError("the fork server ended\nat once")
    assert cli.run(["check", "-o", str(tmp_path / "report.txt")]) == 2
    assert complaint(capsys) == "ddpdoctor: the fork server ended at once\n"
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_is_one_line_and_130(fake: FakeCheck, capsys: Capture) -> None:
    fake.error = KeyboardInterrupt()
    assert cli.run(["check"]) == 130
    assert complaint(capsys) == "ddpdoctor: interrupted\n"


def test_a_fault_of_ours_is_one_line_that_asks_for_a_report(
    fake: FakeCheck, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DDPDOCTOR_TRACEBACK", raising=False)
    fake.error = KeyError("lost")
    assert cli.run(["check"]) == 2
    line = complaint(capsys)
    assert "a fault of ours, KeyError: 'lost'" in line
    assert "DDPDOCTOR_TRACEBACK=1" in line
    monkeypatch.setenv("DDPDOCTOR_TRACEBACK", "1")
    assert cli.run(["check"]) == 2
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_the_list_has_a_line_for_each_pitfall(fake: FakeCheck, capsys: Capture) -> None:
    assert cli.run(["check", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        [p.code, p.title] for p in catalog.load().values()
    ]
    assert cli.run(["check", "--list", "--select", "DDP504"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert fake.asked == []


def test_the_list_says_what_a_pitfall_needs_and_which_launchers_it_starts(
    capsys: Capture,
) -> None:
    assert cli.run(["check", "--list", "--select", "DDP108,DDP117"]) == 0
    unreachable, unpicklable = capsys.readouterr().out.splitlines()
    assert unreachable.endswith("(needs root, namespaces)")
    assert unpicklable.endswith("(starts python, torchrun)")


def test_explain_gives_the_command_of_a_form_that_forked_ranks_do_not_show(
    capsys: Capture,
) -> None:
    assert cli.run(["explain", "DDP117"]) == 0
    proof = catalog.load()["DDP117"].proof
    assert f"- one alone: `python {proof} lambda_as_argument`" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["DDP504", "ddp504", "ema-deadlock"])
def test_explain_prints_the_whole_page(capsys: Capture, name: str) -> None:
    assert cli.run(["explain", name]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# DDP504 ema-deadlock\n")
    pitfall = catalog.load()["DDP504"]
    for heading, text in pitfall.sections.items():
        assert f"## {heading}\n\n{text}" in out
    assert all(variant.summary in out for variant in pitfall.variants)
    assert "ddpdoctor check --select DDP504" in out
    assert "\x1b" not in out


def test_explain_all_prints_every_page(capsys: Capture) -> None:
    assert cli.run(["explain", "--all"]) == 0
    out = capsys.readouterr().out
    assert all(f"# {p.code} {p.title}\n" in out for p in catalog.entries().values())


def test_explain_as_json_is_the_catalogue(capsys: Capture) -> None:
    assert cli.run(["explain", "--all", "--format", "json"]) == 0
    pages = json.loads(capsys.readouterr().out)
    kinds = [Pitfall if "proof" in page else Entry for page in pages]
    assert [kind.model_validate(page) for kind, page in zip(kinds, pages, strict=True)] == list(
        catalog.entries().values()
    )


@pytest.mark.parametrize("name", ["DDP701", "unknown-variable"])
def test_a_code_of_env_is_explained_and_not_performed(
    fake: FakeCheck, capsys: Capture, name: str
) -> None:
    assert cli.run(["explain", name]) == 0
    assert capsys.readouterr().out.startswith("# DDP701 unknown-variable\n")
    assert cli.run(["check", "--select", name]) == 2
    told = f"{name!r} cannot be performed; `ddpdoctor explain {name}` tells of it"
    assert complaint(capsys) == f"ddpdoctor: {told}\n"
    assert fake.asked == []


def test_what_a_finding_is_called_leads_to_its_page(capsys: Capture) -> None:
    assert cli.run(["explain", "left-without-words"]) == 0
    assert capsys.readouterr().out.startswith("# DDP400 ")


def test_explain_in_a_terminal_renders_the_markdown(capsys: Capture) -> None:
    assert cli.run(["explain", "DDP504", "--color", "always"]) == 0
    out = capsys.readouterr().out
    assert "\x1b[" in out
    assert "## " not in out


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> Callable[[Severity], None]:
    """Let `env` find one thing of this severity, without asking the machine."""

    def find(severity: Severity) -> None:
        found = Finding(
            code="DDP109",
            title="variable-ignored",
            severity=severity,
            certainty="proven",
            ranks=(),
            places=(),
            cause="NCCL_TIMEOUT=3600 has no effect",
            cure=Cure(text="Pass timeout= instead."),
        )
        report = EnvironmentReport(environment=EMPTY_ENVIRONMENT, findings=(found,))
        monkeypatch.setattr(ddpdoctor.environment, "examine", lambda **_: report)

    return find


@pytest.mark.parametrize(("severity", "code"), [("error", 1), ("warning", 1), ("info", 0)])
def test_env_fails_by_what_will_go_wrong_and_not_by_what_is_harmless(
    examined: Callable[[Severity], None], capsys: Capture, severity: Severity, code: int
) -> None:
    examined(severity)
    for arguments in ([], ["--format", "markdown"], ["--format", "json"]):
        assert cli.run(["env", *arguments]) == code
        out, err = capsys.readouterr()
        assert "has no effect" in out
        assert err == ""


@pytest.mark.parametrize(
    "command", ["check", "run", "diagnose", "attach", "lint", "env", "probe", "explain"]
)  # config writes a launch file and train a checkpoint: neither is a report
def test_every_command_that_reports_has_the_same_options(command: str, capsys: Capture) -> None:
    assert cli.run([command, "--help"]) == 0
    words = capsys.readouterr().out.split()
    assert {"--format", "-o,", "--output", "--color"} <= set(words)
    assert "--json" not in words
    assert cli.run([command, "--format", "nonsense", "x"]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert "text" in told
    assert "json" in told


def test_a_job_starts_whatever_format_is_set_for_lint(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DDPDOCTOR_FORMAT", "github")
    assert cli.run(["run", "--run-dir", "/proc/none", "--", "true"]) == 2
    assert "cannot make the folder /proc/none" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["check", "diagnose", "attach", "env", "probe", "lint"])
def test_the_format_that_is_set_for_lint_is_no_other_commands(
    command: str, capsys: Capture
) -> None:
    assert cli.run([command, "--help"]) == 0
    assert ("DDPDOCTOR_FORMAT" in capsys.readouterr().out) == (command == "lint")


def test_env_writes_its_json_to_a_file(
    examined: Callable[[Severity], None], capsys: Capture, tmp_path: Path
) -> None:
    examined("info")
    path = tmp_path / "env.json"
    assert cli.run(["env", "--format", "json", "-o", str(path)]) == 0
    assert Report.model_validate_json(path.read_text()).findings[0].code == "DDP109"
    assert capsys.readouterr() == ("", "")


def test_what_check_lacks_is_named_with_the_extra_that_has_it(
    fake: FakeCheck, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert cli.run(["check"]) == 2
    assert "pip install 'ddpdoctor[torch]'" in complaint(capsys)
    assert fake.asked == []


def test_the_version_is_printed(capsys: Capture) -> None:
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out == f"ddpdoctor {__version__}\n"


def test_no_arguments_are_a_question_for_help(capsys: Capture) -> None:
    assert cli.run([]) == 0
    assert "Commands:" in capsys.readouterr().out


def test_help_names_every_exit_code_and_no_line_of_it_is_a_box(capsys: Capture) -> None:
    assert cli.run(["check", "--help"]) == 0
    out = capsys.readouterr().out
    assert "Exit code: 0 healthy" in out
    assert "╭" not in out


def program(*arguments: str, **options: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "ddpdoctor", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )


def test_a_reader_that_goes_away_is_no_error() -> None:
    with program("explain", "--all") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_behind_stdout_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ddpdoctor", "explain", "--all"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "ddpdoctor: cannot write to <stdout>: No space left on device\n"


def test_an_encoding_without_the_marks_gets_ascii() -> None:
    with program(
        "explain", "--all", env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    ) as process:
        out, err = process.communicate()
    assert process.returncode == 0
    assert out.isascii()
    assert err == ""


SLOW = """
import sys, time
import ddpdoctor.check
from ddpdoctor import cli

def check(pitfalls, options, on_verdict, on_start):
    try:
        print("started", flush=True)
        time.sleep(60)
    finally:
        print("cleared up", flush=True)

ddpdoctor.check.check = check
sys.argv = ["ddpdoctor", "check"]
cli.main()
"""


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGINT, 130, "ddpdoctor: interrupted\n"),
        (signal.SIGTERM, 143, ""),
        (signal.SIGHUP, 129, ""),
    ],
)
def test_a_signal_leaves_in_order(number: signal.Signals, code: int, said: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(number)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (code, "cleared up\n", said)


AT_ITS_END = """
import atexit, sys
from ddpdoctor import cli

def at_the_end():
    print("at the end", flush=True)
    sys.stdin.read(1)

atexit.register(at_the_end)
sys.argv = ["ddpdoctor", "explain", "DDP101"]
cli.main()
"""


def test_ctrl_c_while_python_ends_prints_no_traceback() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", AT_ITS_END],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        while process.stdout.readline() != "at the end\n":
            pass
        process.send_signal(signal.SIGINT)
        _, err = process.communicate("x")
    assert (process.returncode, err) == (0, "")


def test_ctrl_c_while_the_command_line_is_imported_is_one_line_and_130(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import time; print('imports', flush=True); time.sleep(60)")
    with subprocess.Popen(
        [sys.executable, "-m", "ddpdoctor", "explain", "DDP101"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "imports\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert (process.returncode, err) == (130, "ddpdoctor: interrupted\n")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_within_what_python_does_around_a_fork_is_not_lost(name: str) -> None:
    code = """
import logging, os, signal, time
from ddpdoctor import complaints, interruption

class Lock:
    def acquire(self): pass
    def _at_fork_reinit(self): pass
    __enter__ = acquire
    def __exit__(self, *_): self.release()
    def release(self): os.kill(os.getpid(), signal.NAME)

interruption.heed()
logging._lock, kept = Lock(), logging._lock
try:
    with complaints.leaving_in_order():
        if not os.fork():
            os._exit(0)
        time.sleep(5)
        print("forgotten")
except (KeyboardInterrupt, SystemExit) as end:
    print("interrupted", *end.args)
logging._lock = kept
""".replace("NAME", name)
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=ENDLESS
    )
    said = "" if name == "SIGINT" else f" {128 + getattr(signal, name)}"
    assert (ran.stdout, ran.stderr) == (f"interrupted{said}\n", "")


TURNS = """
import time
print("imports", flush=True)
try:
    time.sleep(60)
except BaseException:
    raise AttributeError("partially initialized module") from None
"""


@pytest.mark.parametrize(
    ("module", "arguments"),
    [("yaml", ["explain", "DDP101"]), ("psutil", ["run", "--", "true"])],
)
def test_ctrl_c_that_an_import_turns_into_an_error_is_an_interruption_all_the_same(
    tmp_path: Path, module: str, arguments: list[str]
) -> None:
    (tmp_path / f"{module}.py").write_text(TURNS)  # as yaml's C extension does
    with subprocess.Popen(
        [sys.executable, "-m", "ddpdoctor", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "imports\n"
        process.send_signal(signal.SIGINT)
        told = process.communicate()
    # Nothing on the first: it was not imported again for the telling.
    assert (process.returncode, *told) == (130, "", "ddpdoctor: interrupted\n")


def test_the_command_starts_where_ctrl_c_is_heeded_from_the_first_import_on() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    assert project["project"]["scripts"] == {"ddpdoctor": "ddpdoctor.__main__:main"}


def test_the_help_of_all_commands_names_the_flagship_first_and_cuts_no_line(
    capsys: Capture,
) -> None:
    assert cli.run(["--help"]) == 0
    _, listed = capsys.readouterr().out.split("Commands:\n")
    assert listed.split()[0] == "run"
    assert "..." not in listed


@pytest.mark.parametrize(
    "command",
    ["check", "run", "diagnose", "attach", "lint", "env", "probe", "config", "explain", "lsp"],
)
def test_every_option_says_what_it_is_for_and_what_it_takes(command: str, capsys: Capture) -> None:
    assert cli.run([command, "--help"]) == 0
    usage, _, rest = capsys.readouterr().out.partition("\n\n")
    assert "{COMMAND...}..." not in usage
    for option in re.split(r"\n  (?=-)", rest.partition("Options:\n")[2]):
        told = " ".join(option.split())
        assert re.search(r"[A-Za-z-]{2,}>? .*[a-z]\w+.*\.", told), told
        assert not re.search(r"<(int|float|str|list)|--no-statistics", told), told


def test_what_is_not_converted_is_what_typer_would_make_of_it() -> None:
    """Of all defaults, and of text where text is asked for."""
    group: Any = get_command(cli.application())
    with group.make_context("ddpdoctor", [], resilient_parsing=True) as context:
        told = 0
        for command in (group.get_command(context, name) for name in group.list_commands(context)):
            for each in command.get_params(context):
                if "get_runtime_param" not in vars(each):
                    continue  # --help, and all of a typer that converts otherwise
                for value in (each.get_default(context), None, "text", ("a", "b")):
                    assert taken(each.get_runtime_param, each, context, value) == taken(
                        partial(type(each).get_runtime_param, each), each, context, value
                    ), (command.name, each.name, value)
                    told += 1
    assert told > 300 or not hasattr(typer.core.TyperOption, "get_runtime_param")


def taken(make: Callable[[], Any], parameter: Any, context: Any, value: Any) -> object:
    """What a parameter makes of a value; "no" where it takes none such."""
    try:
        return make().coerce(value, param=parameter, ctx=context) or None
    except typer.BadParameter:
        return "no"
