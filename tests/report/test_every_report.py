"""What every command has to say, in every format: the same findings in the same words."""

import contextlib
import inspect
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from report_samples import report_of, verdict
from rich.cells import cell_len
from run_samples import EVIL, deadlock, evidence
from run_samples import report as run_report
from test_html import Page, parted
from test_report_environment import finding as env_finding
from test_report_environment import full
from test_report_environment import report as env_report

from ddpdoctor.check.telling import told as check
from ddpdoctor.cli import application
from ddpdoctor.environment import telling as environment
from ddpdoctor.evidence import Fate
from ddpdoctor.lint.report import Report as LintReport
from ddpdoctor.lint.rule import Diagnostic, Related, Trouble
from ddpdoctor.probe import telling as probe
from ddpdoctor.probe.model import Check, Link, Measured, Point, ProbeReport, RankFacts
from ddpdoctor.report import as_json
from ddpdoctor.report.formats import ReportFormat
from ddpdoctor.report.job import of_job
from ddpdoctor.report.lives import Attempt, Call, Mark, RankLine
from ddpdoctor.report.model import Report, render
from ddpdoctor.report.redaction import redacted
from ddpdoctor.report.words import markdown_prose

CAUSE = "the ranks part here, and wait for ever"


def of_run(said: str) -> Report:
    return run_report(deadlock(cause=said), not_seen=(said,))


def of_record(said: str) -> Report:
    attempts = [Attempt.of(name, evidence()) for name in ("attempt-0-1", "attempt-1-2")]
    found = deadlock(cause=said)
    return of_job("diagnose", attempts, [found], subject=(said,), not_seen=(said,))


def of_attach(said: str) -> Report:
    job = Attempt.of(said, evidence())
    return of_job(
        "attach", [job, job], [deadlock(cause=said)], subject=(), not_seen=(said,), are_jobs=True
    )


def of_check(said: str) -> Report:
    problem = verdict("DDP101", "fix", "it", "fails", said, said, deadlock(cause=said))
    return check(report_of(problem, verdict("DDP101", "broken", "bad", "recognised", said, said)))


def of_lint(said: str) -> Report:
    found = Diagnostic("a.py", 3, 5, "DDP401", "share-it", "certain", said, (said,), said, 3, 9)
    return LintReport([found], [Trouble("b.py", said)], files=2).told()


def of_env(said: str) -> Report:
    return environment.told(env_report(full(), env_finding("error", said)))


def of_probe(said: str) -> Report:
    rank = RankFacts(
        rank=0, host=said, device="cpu", torch="2.13", rendezvous=0.1, compute=0.1, step=0.1
    )
    other = rank.model_copy(update={"rank": 1})
    measured = Measured(
        world_size=2,
        backend="gloo",
        ranks=(rank, other),
        checks=(
            Check(operation="all_reduce", dtype="float32", state="right"),
            Check(operation="all_gather", dtype="float32", state="wrong", detail=said),
            Check(operation="broadcast", dtype="float8", state="unsupported", detail=said),
        ),
        points=(
            Point(
                operation="all_reduce",
                size=1024,
                seconds=0.1,
                fastest=0.1,
                algorithm_bandwidth=1e6,
                bus_bandwidth=1e6,
            ),
        ),
        links=(Link(first=0, second=1, bandwidth=1e8, latency=1e-4),),
        links_measured="all",
        clocks=(),
        overhead=1e-6,
        copy_bandwidth=1e9,
        full_step=0.1,
        seconds=1.0,
    )
    found = env_finding("error", said)
    return probe.told(ProbeReport(measured=measured, findings=(found,)))


COMMANDS: dict[str, Callable[[str], Report]] = {
    "run": of_run,
    "diagnose": of_record,
    "attach": of_attach,
    "check": of_check,
    "lint": of_lint,
    "env": of_env,
    "probe": of_probe,
}
every = pytest.mark.parametrize("command", COMMANDS)


def is_junit(text: str) -> None:
    root = ElementTree.fromstring(text.partition("\n")[2])
    for element in (root, *root):
        for name, tag in (("tests", "testcase"), ("failures", "failure"), ("skipped", "skipped")):
            counted = [case for case in element.iter("testcase") if case.find(tag) is not None]
            found = counted if tag != "testcase" else list(element.iter(tag))
            assert element.get(name) == str(len(found))


def is_sarif(text: str) -> None:
    (run,) = json.loads(text)["runs"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


def is_markdown(text: str) -> None:
    assert text.startswith("# ddpdoctor ")
    widths = [
        {len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in table.splitlines()}
        for table in text.split("\n\n")
        if table.startswith("| ")
    ]
    assert all(len(each) == 1 for each in widths)


def is_html(text: str) -> None:
    assert Page(text).open == []
    assert Page(text).seen.count("script") == 1


def is_perfetto(text: str) -> None:
    """By the documented format: what each phase must have, and slices that can be stacked."""
    needed = {"X": {"ts", "dur", "tid"}, "i": {"ts", "s"}, "M": {"args"}}
    threads: dict[tuple[int, int], list[tuple[int, int]]] = {}
    flows: dict[int, list[tuple[bool, bool]]] = {}
    events = json.loads(text)["traceEvents"]
    for each in events:
        assert needed[each["ph"]] | {"name", "pid"} <= each.keys()
        if each["ph"] == "X":
            begin = round(each["ts"] * 1000)
            span = begin, begin + round(each["dur"] * 1000)
            threads.setdefault((each["pid"], each["tid"]), []).append(span)
    for spans in threads.values():
        assert spans == sorted(spans, key=lambda span: (span[0], -span[1]))
        around: list[tuple[int, int]] = []
        for begin, end in spans:
            assert begin < end
            while around and around[-1][1] <= begin:
                around.pop()
            assert not around or end <= around[-1][1]
            around.append((begin, end))
    for each in sorted((e for e in events if "bind_id" in e), key=lambda e: float(e["ts"])):
        ends = "flow_in" in each, "flow_out" in each
        flows.setdefault(each["bind_id"], []).append(ends)
    for first, *between, last in flows.values():
        assert (first, last) == ((False, True), (True, False))
        assert {*between} <= {(True, True)}


@pytest.mark.parametrize("format_", sorted(set(ReportFormat) - {"perfetto"}))
def test_what_could_not_be_seen_is_said_in_every_format(format_: ReportFormat) -> None:
    assert "ranks 1-3 wrote nothing" in render(
        run_report(not_seen=("ranks 1-3 wrote nothing",)), format_
    )


def failed(status: int, code: int | None = None, **changes: Any) -> Report:
    """A job in which rank 1 ended with that code, or of which no rank was seen."""
    world = evidence()
    for rank in world.ranks:
        rank.exceptions, rank.stuck = [], None
        rank.fate = Fate(rank.rank, 10, code if rank.rank == 1 else 0, None, 105.5)
    attempts = [Attempt.of("attempt-0-1", world)] if code is not None else []
    return of_job("run", attempts, [], subject=("torchrun", "train.py"), status=status, **changes)


@pytest.mark.parametrize("format_", ReportFormat)
@pytest.mark.parametrize(
    ("report", "said"),
    [
        (failed(1, 3), "the job failed: rank 1 ended with exit code 3"),
        (failed(3), "the job failed: it ended with exit code 3"),
        (failed(-9), "the job failed: it ended by SIGKILL"),
        (failed(1, children=[0, -9, -9]), "2 processes that it had started ended by SIGKILL"),
        (failed(-15, ended_by="signal"), "the job was ended by SIGTERM from outside"),
        (redacted(failed(1, 3)), "the job failed: rank 1 ended with exit code 3"),
    ],
)
def test_a_job_that_failed_without_a_finding_says_so_in_every_format(
    format_: ReportFormat, report: Report, said: str
) -> None:
    text = render(report, format_)
    SHAPES[format_](text)
    assert said[1:] in " ".join(text.split())


def test_only_what_is_well_looks_well() -> None:
    def looks(report: Report) -> str:
        found = re.search(r'<header class="(\w+)">', render(report, "html"))
        assert found
        return found[1]

    assert looks(failed(0)) == "well"
    assert looks(failed(0, not_seen=["rank 1 wrote nothing"])) == "unseen"
    assert looks(failed(3)) == "error"
    assert looks(of_job("run", [], [deadlock(severity="info")], subject=(), status=3)) == "error"
    assert looks(failed(-15, ended_by="signal")) == "warning"
    assert (
        looks(check(report_of(verdict("DDP101", "fix", "it", "fails", "said", "why")))) == "error"
    )


@pytest.mark.parametrize("format_", sorted(set(ReportFormat) - {"perfetto"}))
def test_a_fix_that_fails_without_a_finding_is_said_in_every_format(format_: ReportFormat) -> None:
    failed = verdict("DDP101", "fix", "it", "fails", "said", "three samples are missing")
    said = render(check(report_of(failed)), format_)
    assert "three samples are missing" in " ".join(said.split())


def test_a_trace_binds_the_members_of_a_collective_in_the_order_in_which_they_came(
    tmp_path: Path,
) -> None:
    text = render(parted(tmp_path, 4), "perfetto")
    is_perfetto(text)
    events = json.loads(text)["traceEvents"]
    first = [each for each in events if each.get("bind_id") == 1]
    assert [each["pid"] for each in first] == [0, 1, 2, 3]
    names = {each["pid"]: each["args"]["name"] for each in events if each["name"] == "process_name"}
    assert names[0] == "rank 0: blocked in barrier #9, then ended"
    (waits,) = (e for e in events if e["name"] == "all_reduce #8" and e["pid"] == 0)
    assert waits["dur"] == pytest.approx(200_000)


def traced(*lines: RankLine) -> list[dict[str, Any]]:
    told = Report(
        command="run",
        verdict="",
        attempts=(Attempt(name="a", world_size=len(lines), ranks=lines, seconds=60.0),),
    )
    text = render(told, "perfetto")
    is_perfetto(text)
    return list(json.loads(text)["traceEvents"])


def test_a_slice_lies_within_another_and_ends_it_only_where_it_outlasts_it() -> None:
    marks = (
        Mark(kind="blocked", at=12.0, until=60.0, text="blocked"),
        Mark(kind="paused", at=10.0, until=14.0, text="before"),
        Mark(kind="paused", at=20.0, until=30.0, text="within"),
    )
    events = traced(RankLine(rank=0, pid=1, fate="was ended", marks=marks))
    spans = {e["name"]: (e["ts"] / 1e6, e["dur"] / 1e6) for e in events if e["ph"] == "X"}
    assert spans == {"before": (10.0, 2.0), "blocked": (12.0, 48.0), "within": (20.0, 10.0)}


def test_a_rank_that_wrote_nothing_is_in_a_trace_and_threads_stand_in_one_order() -> None:
    """Perfetto leaves out what has no event, and tells a main thread by the process's number."""
    file = Mark(kind="file", at=1.0, until=2.0, text="saved")
    call = Call(group="0", seq=1, op="all_reduce", at=1.0)
    events = traced(
        RankLine(rank=0, pid=1, fate="was ended", marks=(file,), calls=(call,)),
        RankLine(rank=1, pid=0, fate="wrote nothing"),
    )
    assert [e["name"] for e in events if e["pid"] == 1 and e["ph"] != "M"] == ["wrote nothing"]
    numbers = {e["tid"]: e["args"] for e in events if e["name"] == "thread_sort_index"}
    assert numbers == {tid: {"sort_index": tid} for tid in (1, 2, 3)}
    assert {e["tid"] for e in events} == {1, 2, 3}


@contextlib.contextmanager
def told_by_the_trace_processor(file: Path) -> Iterator[Callable[[str], list[Any]]]:
    """What it answers to a query for one column; skips where there is none.

    Its package fetches the program itself, once, where it may; DDPDOCTOR_TRACE_PROCESSOR names one
    that is there already.
    """
    package = pytest.importorskip("perfetto.trace_processor")
    there = os.environ.get("DDPDOCTOR_TRACE_PROCESSOR")
    try:
        config = package.TraceProcessorConfig(bin_path=there)
        processor = package.TraceProcessor(trace=str(file), config=config)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"the trace processor cannot be fetched: {error}")
    with contextlib.closing(processor):
        yield lambda query: [each.told for each in processor.query(query)]


def test_the_trace_processor_reads_what_is_in_a_trace(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    report = parted(tmp_path, 4)
    file.write_text(render(report, "perfetto"), encoding="utf-8")
    with told_by_the_trace_processor(file) as told:
        named = told("select name as told from process where name glob 'rank *' order by name")
        assert [str(name).partition(":")[0] for name in named] == [f"rank {n}" for n in range(4)]
        assert told("select count() as told from slice where name = 'all_reduce #8'") == [4]
        assert told("select count() as told from flow")[0] == 8 * 3 + 2
        joined = "flow join slice a on a.id = slice_out join slice b on b.id = slice_in"
        assert told(f"select count() as told from {joined} where a.name = b.name") == [8 * 3 + 2]
        failed = "select name as told from stats where severity in ('error', 'data_loss')"
        assert told(f"{failed} and value > 0") == []
        drawn = "select dur as told from slice where name glob 'blocked in *' order by dur"
        of_events = [
            e for e in json.loads(file.read_text("utf-8"))["traceEvents"] if e["ph"] in "Xi"
        ]
        span = "name || ' ' || ts || ' ' || dur"
        assert sorted(told(f"select {span} as told from slice")) == sorted(
            f"{e['name']} {round(e['ts'] * 1000)} {round(e.get('dur', 0) * 1000)}"
            for e in of_events
        )
        order = "extract_arg(arg_set_id, 'process_sort_index_hint')"
        in_turn = told(f"select name as told from process where name is not null order by {order}")
        assert [str(name).partition(":")[0] for name in in_turn] == [
            *("ddpdoctor", "rank 0", "rank 1", "rank 2", "rank 3")
        ]
        blocked = [m for x in report.attempts[0].ranks for m in x.marks if m.kind == "blocked"]
        assert told(drawn) == sorted(round((m.until - m.at) * 1e9) for m in blocked)


def is_text(text: str) -> None:
    assert max(map(cell_len, text.splitlines())) <= 100


def is_concise(text: str) -> None:
    finding = r"(.+: DDP\d{3} .+ \[\w+\]|\w+: (not seen: |the job ).+)$"
    assert all(re.match(finding, line) for line in text.splitlines())


def is_json(text: str) -> None:
    Report.model_validate_json(text)
    assert json.loads(text).keys() == json.loads(as_json.schema())["properties"].keys()


def is_github(text: str) -> None:
    assert all(re.match(r"::(error|warning|notice) .+::.+", line) for line in text.splitlines())


def is_gitlab(text: str) -> None:
    for issue in json.loads(text):
        assert {"description", "check_name", "fingerprint", "severity", "location"} == {*issue}


SHAPES = {
    "text": is_text,
    "concise": is_concise,
    "json": is_json,
    "github": is_github,
    "gitlab": is_gitlab,
    "junit": is_junit,
    "sarif": is_sarif,
    "markdown": is_markdown,
    "html": is_html,
    "perfetto": is_perfetto,
}


@every
@pytest.mark.parametrize("format_", ReportFormat)
def test_every_command_is_told_in_every_format(command: str, format_: str) -> None:
    text = render(COMMANDS[command](CAUSE), format_)
    SHAPES[format_](text)
    assert CAUSE in " ".join(text.split())
    assert re.search(r"DDP\d{3}|wrong", text)


@every
@pytest.mark.parametrize("format_", ReportFormat)
def test_nothing_that_is_hostile_breaks_any_of_them(command: str, format_: str) -> None:
    text = render(COMMANDS[command](EVIL), format_)
    text.encode()
    SHAPES[format_](text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", text)


@pytest.mark.parametrize("format_", ["text", "markdown", "html", "github", "sarif"])
def test_what_lint_read_is_told_once(format_: ReportFormat) -> None:
    why = "`rank` differs from rank to rank (line 2)"
    found = Diagnostic("a.py", 3, 5, "DDP401", "x", "certain", "hangs", (why,), "do it", 3, 9)
    found = replace(found, related=(Related("a.py", 2, why),))
    told = render(LintReport([found], files=1).told(), format_)
    said = json.loads(told)["runs"][0]["results"][0]["message"]["text"] if told[0] == "{" else told
    shown = re.sub(r"</?code>|[`\\]", "", said.partition("As an issue")[0])
    assert shown.count("rank differs from rank to rank") == 1
    assert "a.py" in told


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("under `if a_b | c:` here_", r"under `if a_b \| c:` here\_"),
        ("``x``, `y", r"\`\`x\`\`, \`y"),
        ("`a``b`", r"\`a\`\`b\`"),
    ],
)
def test_what_stands_in_backticks_is_code_in_markdown(said: str, shown: str) -> None:
    assert markdown_prose(said, in_table=True) == shown
    assert shown.replace(r"\|", "|" if "if" in said else r"\|") == markdown_prose(said)


@every
def test_sarif_has_a_place_for_what_has_a_line(command: str) -> None:
    report = COMMANDS[command](CAUSE)
    (run,) = json.loads(render(report, "sarif"))["runs"]
    placed = [finding for finding in report.findings if finding.place is not None]
    assert len(run["results"]) == len(placed)
    notes = run["invocations"][0]["toolExecutionNotifications"]
    assert len(notes) == len(report.findings) - len(placed) + len(report.not_seen)


def test_every_command_with_a_report_takes_every_format() -> None:
    taken = {}
    for command in application().registered_commands:
        parameters = inspect.signature(command.callback or print).parameters
        if "format_" in parameters:
            name = command.name or getattr(command.callback, "__name__", "")
            taken[name] = set(type(parameters["format_"].default))
    taken.pop("explain")  # its pages are no report
    assert taken.keys() >= {"attach", "check", "diagnose", "env", "lint", "probe", "run"}
    for name, formats in taken.items():
        assert formats == {*ReportFormat}, name


def test_the_report_room_knows_no_command() -> None:
    room = Path(environment.__file__).parent.parent / "report"
    # Nor is there a format that is no file, nor a file that is no format.
    assert {file.stem for file in room.glob("as_*")} == {f"as_{each}" for each in ReportFormat}
    commands = "attach|check|configure|environment|lint|postmortem|probe|run|train"
    for file in room.rglob("*.py"):
        assert not re.search(rf"ddpdoctor\.({commands})\b", file.read_text()), file
        assert not re.search(r"\.command [!=]=", file.read_text()), file
