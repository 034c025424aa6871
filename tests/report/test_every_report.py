"""What every command has to say, in every format: the same findings in the same words."""

import contextlib
import inspect
import json
import re
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from report_samples import report_of, verdict
from rich.cells import cell_len
from run_samples import EVIL, STARTED, deadlock, evidence
from run_samples import report as run_report
from test_html import Page, parted
from test_report_environment import finding as env_finding
from test_report_environment import full
from test_report_environment import report as env_report

from ddpdoctor.check.telling import told as check
from ddpdoctor.cli import application
from ddpdoctor.environment import telling as environment
from ddpdoctor.lint.report import Report as LintReport
from ddpdoctor.lint.rule import Diagnostic, Trouble
from ddpdoctor.probe import telling as probe
from ddpdoctor.probe.model import Check, Link, Measured, Point, ProbeReport, RankFacts
from ddpdoctor.report import as_json
from ddpdoctor.report.formats import ReportFormat
from ddpdoctor.report.job import of_job
from ddpdoctor.report.lives import Attempt
from ddpdoctor.report.model import Report, render

CAUSE = "the ranks part here, and wait for ever"


def of_run(said: str) -> Report:
    return run_report(deadlock(cause=said), not_seen=(said,))


def of_record(said: str) -> Report:
    attempts = [Attempt.of(name, evidence()) for name in ("attempt-0-1", "attempt-1-2")]
    found = deadlock(cause=said)
    return of_job("diagnose", attempts, [found], subject=(said,), not_seen=(said,))


def of_attach(said: str) -> Report:
    job = Attempt.of(said, evidence())
    return of_job("attach", [job, job], [deadlock(cause=said)], subject=(), not_seen=(said,))


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
    needed |= {phase: {"ts", "id", "tid"} for phase in "stf"}
    threads: dict[tuple[int, int], list[tuple[float, float]]] = {}
    flows: dict[int, str] = {}
    events = json.loads(text)["traceEvents"]
    for each in events:
        assert needed[each["ph"]] | {"name", "pid"} <= each.keys()
        if each["ph"] == "X":
            span = each["ts"], each["ts"] + each["dur"]
            threads.setdefault((each["pid"], each["tid"]), []).append(span)
    for spans in threads.values():
        spans.sort()
        assert all(end <= begin + 1e-3 for (_, end), (begin, _) in pairwise(spans))
    for each in events:
        if each["ph"] in "stf":
            flows[each["id"]] = flows.get(each["id"], "") + each["ph"]
            spans = threads[each["pid"], each["tid"]]
            assert any(begin <= each["ts"] <= end for begin, end in spans)
    assert all(re.fullmatch("st*f", flow) for flow in flows.values())


@pytest.mark.parametrize("format_", sorted(set(ReportFormat) - {"perfetto"}))
def test_what_could_not_be_seen_is_said_in_every_format(format_: ReportFormat) -> None:
    assert "ranks 1-3 wrote nothing" in render(
        run_report(not_seen=("ranks 1-3 wrote nothing",)), format_
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
    first = [(each["ph"], each["pid"]) for each in events if each.get("id") == 1]
    assert first == [("s", 1), ("t", 2), ("t", 3), ("f", 4)]
    names = {each["pid"]: each["args"]["name"] for each in events if each["name"] == "process_name"}
    assert names[1] == "rank 0: blocked in barrier #9, then ended"
    (waits,) = (e for e in events if e["name"] == "all_reduce #8" and e["pid"] == 1)
    assert waits["dur"] == pytest.approx(200_000)


def test_the_trace_processor_reads_what_is_in_a_trace(tmp_path: Path) -> None:
    """Its package fetches the program itself, once: where it may not, this is skipped."""
    package = pytest.importorskip("perfetto.trace_processor")
    file = tmp_path / "trace.json"
    file.write_text(render(parted(tmp_path, 4), "perfetto"), encoding="utf-8")
    try:
        processor = package.TraceProcessor(trace=str(file))
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"the trace processor cannot be fetched: {error}")

    def told(query: str) -> list[object]:
        return [each.told for each in processor.query(query)]

    with contextlib.closing(processor):
        named = told("select name as told from process where name glob 'rank *' order by name")
        assert [str(name).partition(":")[0] for name in named] == [f"rank {n}" for n in range(4)]
        assert told("select count() as told from slice where name = 'all_reduce #8'") == [4]
        assert told("select count() as told from flow")[0] == 8 * 3 + 2
        failed = "select name as told from stats where severity = 'error' and value > 0"
        assert told(failed) == []


def is_text(text: str) -> None:
    assert max(map(cell_len, text.splitlines())) <= 100


def is_concise(text: str) -> None:
    finding = r"(.+: DDP\d{3} .+ \[\w+\]|\w+: not seen: .+)$"
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


@pytest.mark.parametrize("format_", ReportFormat)
def test_a_finding_reads_the_same_whichever_command_gives_it(format_: str) -> None:
    told = {
        render(
            Report(command=f"COMMAND-{name}", verdict="", findings=(deadlock(),), started=STARTED),
            format_,
        ).replace(f"COMMAND-{name}", "")
        for name in COMMANDS
    }
    assert len(told) == 1


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
