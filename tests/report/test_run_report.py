"""The report on a job, in every format."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from run_samples import deadlock, evidence, evil_report, report, script

from ddpdoctor.catalog import Finding
from ddpdoctor.evidence import Evidence
from ddpdoctor.lint.report import Report as LintReport
from ddpdoctor.report import as_json
from ddpdoctor.report.formats import ReportFormat
from ddpdoctor.report.gravity import FailOn
from ddpdoctor.report.job import of_job
from ddpdoctor.report.lives import Attempt
from ddpdoctor.report.model import Report, render
from ddpdoctor.report.output import Page
from ddpdoctor.report.redaction import redacted
from ddpdoctor.run.teller import Teller


def info(**changes: object) -> Finding:
    return deadlock(
        code="DDP419", severity="info", title="teardown", places=(), ranks=()
    ).model_copy(update=changes)


def test_a_run_with_nothing_to_tell_is_told_in_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller(["train"], Page(), redact=False)
    teller.conclude(report(run_dir=Path("kept")), None, None)
    assert capsys.readouterr().err == ""
    teller.conclude(report(not_seen=["rank 2 wrote nothing"]), None, None)
    assert capsys.readouterr().err == "? not seen: rank 2 wrote nothing\n"


def test_what_the_launcher_said_of_failed_ranks_is_told_where_no_verdict_stands_in_its_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    summary = tmp_path / "summary.log"
    summary.write_text("train.py FAILED\n")
    Teller(["train"], Page(), redact=False).conclude(report(), None, summary)
    assert capsys.readouterr().err == "train.py FAILED\n"
    Teller(["train"], Page(), redact=False).conclude(report(info()), None, summary)
    assert capsys.readouterr().err.startswith("train.py FAILED\n")
    Teller(["train"], Page(), redact=False).conclude(report(deadlock()), None, summary)
    told = capsys.readouterr().err
    assert "train.py FAILED" not in told
    assert told.endswith(f"what the launcher said of ranks that failed (or --verbose): {summary}\n")


def test_a_job_that_is_well_is_not_spoken_of_where_there_was_no_time_to_read_its_source(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = report(unread=["/home/me/train.py", "/home/me/model.py"])
    (note,) = made.notes
    assert note.startswith("what only the source shows of train.py, model.py: there was no time")
    assert redacted(made).notes == made.notes
    Teller(["train"], Page(), redact=False).conclude(made, None, None)
    assert capsys.readouterr().err == ""


def test_the_text_shows_who_waits_for_whom_at_which_line(tmp_path: Path) -> None:
    text = render(report(deadlock(script(tmp_path))), "text")
    assert text.startswith(
        "✖ DDP401 rank-conditional-collective · deadlock proven 0.7 s after the last rank blocked\n"
        "  rank 0      train.py:4  save_checkpoint  barrier #413     waits for 1, 2\n"
        "  ranks 1, 2  train.py:1  Trainer.fit      all_reduce #413  wait for 0\n"
    )
    assert "  4 |     dist.barrier()\n    |     ^^^^^^^^^^^^^^\n" in text
    assert "  Remedy    Call it on every rank. ddpdoctor explain DDP401\n" in text
    assert text.endswith("1 error; 3 ranks, ended by the doctor, 12.3 s\n")


def test_what_was_not_seen_comes_first() -> None:
    text = render(report(deadlock(), not_seen=["rank 2 wrote nothing"]), "text")
    assert text.startswith("? not seen: rank 2 wrote nothing\n\n✖ DDP401")


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_no_line_of_text_is_wider_than_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.chdir(tmp_path)
    finding = deadlock(script(tmp_path), evidence=("word " * 80,), consequences=("word " * 40,))
    text = render(report(finding), "text", Page(width))
    assert max(map(len, text.splitlines()[1:])) <= width


def test_the_gravest_finding_comes_first() -> None:
    made = report(info(), deadlock())
    assert [finding.code for finding in made.findings] == ["DDP401", "DDP419"]


@pytest.mark.parametrize(
    ("severity", "fails"), [("error", False), ("warning", True), ("info", True), ("never", False)]
)
def test_a_warning_fails_on_warnings_and_on_less(severity: str, fails: bool) -> None:
    assert FailOn(severity).is_reached(report(deadlock(severity="warning")).severities) is fails


@pytest.mark.parametrize("format_", ReportFormat)
def test_no_format_lets_the_job_write_control_characters(
    tmp_path: Path, format_: ReportFormat
) -> None:
    text = render(evil_report(tmp_path), format_, Page(colour=False))
    text.encode()
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", text)


def test_colour_is_only_where_it_was_asked_for() -> None:
    assert "\x1b[" not in render(report(deadlock()), "text", Page())
    assert "\x1b[1;31mDDP401" in render(report(deadlock()), "text", Page(colour=True))


def test_json_is_read_back_as_the_same_report(tmp_path: Path) -> None:
    made = report(deadlock(script(tmp_path)), run_dir=tmp_path)
    again = Report.model_validate_json(render(made, "json"))
    left_out = {"groups": {"__all__": {"cases", "seconds"}}}  # for CI servers alone
    assert again.model_dump(exclude=left_out) == made.model_dump(exclude=left_out)
    assert json.loads(render(made, "json"))["schema_version"] == 4


def test_json_of_a_newer_doctor_is_read_without_what_is_unknown() -> None:
    document = json.loads(render(report(deadlock()), "json")) | {"mood": "good"}
    assert Report.model_validate(document).findings[0].code == "DDP401"


def test_the_json_schema_in_the_repository_is_that_of_the_model() -> None:
    committed = Path(as_json.__file__).with_name("schema.json").read_text(encoding="utf-8")
    assert committed == as_json.schema()


def test_junit_fails_the_culprit_and_skips_what_was_not_seen(tmp_path: Path) -> None:
    made = report(deadlock(script(tmp_path)), info(), not_seen=["rank 2 wrote nothing"])
    suite = ElementTree.fromstring(render(made, "junit").partition("\n")[2])[0]
    outcomes = {
        case.get("name"): [element.tag for element in case if element.tag != "system-out"]
        for case in suite
    }
    assert outcomes == {
        "rank 0": ["failure"],
        "rank 1": [],
        "rank 2": [],
        "job": [],
        "not seen": ["skipped"],
    }
    counts = {name: suite.get(name) for name in ("tests", "failures", "skipped")}
    assert counts == {"tests": "5", "failures": "1", "skipped": "1"}


def test_sarif_gives_relative_paths_and_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (run,) = json.loads(render(report(deadlock(script(tmp_path)), info()), "sarif"))["runs"]
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "train.py"
    assert place["region"] == {"startLine": 4}
    assert (result["ruleId"], result["level"]) == ("DDP401", "error")
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"].startswith("DDP419 teardown")


def test_the_fingerprint_of_a_finding_does_not_depend_on_the_line_number(tmp_path: Path) -> None:
    def prints() -> object:
        (run,) = json.loads(render(report(finding), "sarif"))["runs"]
        return run["results"][0]["partialFingerprints"]

    file = Path(script(tmp_path))
    finding = deadlock(str(file))
    before = prints()
    file.write_text("\n" + file.read_text())
    place = finding.places[0].place
    assert place is not None
    moved = type(place)(place.file, place.line + 1, place.function)
    finding = deadlock(str(file), places=(finding.places[0].model_copy(update={"place": moved}),))
    assert prints() == before


def test_a_rank_is_told_by_how_it_ended() -> None:
    fates = {line.rank: line.fate for line in report().attempts[-1].ranks}
    assert fates == {
        0: "blocked in barrier #413, then ended",
        1: "raised ValueError",
        2: "wrote nothing",
    }


def test_launches_are_numbered_as_they_were_begun_whichever_is_told_of() -> None:
    def attempts(*names: str) -> list[Attempt]:
        return [Attempt.of(name, evidence()) for name in names]

    told = of_job("run", attempts("attempt-2-7", "attempt-0-7", "attempt-1-7"), [], subject=("x",))
    assert [group.title.partition(" in ")[2] for group in told.groups] == [
        *("launch 3 of 3", "launch 1 of 3", "launch 2 of 3")
    ]
    (note,) = told.notes
    assert re.findall(r"launch \d", note) == ["launch 1", "launch 3"]


def test_the_clocks_of_different_hosts_are_not_compared() -> None:
    here, there, silent = evidence().ranks
    there.boot, there.joining = "there", 1_000_000.0
    there.exceptions = [replace(there.exceptions[0], time=1_000_002.0)]
    there.fate, there.last_event = None, 1_000_002.0
    attempt = Attempt.of("attempt-0", Evidence(3, [here, there, silent]))
    assert attempt.seconds == 5.5
    assert [mark.at for mark in attempt.ranks[1].marks] == [0.0, 2.0]


@pytest.mark.parametrize("format_", ReportFormat)
def test_redaction_leaves_out_paths_source_and_arguments(
    tmp_path: Path, format_: ReportFormat
) -> None:
    finding = deadlock(
        script(tmp_path),
        cause=f"FileNotFoundError: no '{tmp_path}/secret.pt' nor data/secret.csv in `secret()`",
        evidence=("secret",),
    )
    made = report(finding, run_dir=tmp_path, not_seen=[f"{tmp_path}/secret"])
    text = render(redacted(made), format_)
    assert "secret" not in text
    assert str(tmp_path) not in text
    assert "torch.save" not in text
    assert "train.py" in text
    if format_ not in ("concise", "github", "gitlab"):  # these tell no function
        assert "save_checkpoint" in text.replace("\\", "")


def test_a_source_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    binary = tmp_path / "train.py"
    binary.write_bytes(b"\xff\xfe\x00\n" * 3)
    assert "DDP401" in render(report(deadlock(str(binary))), "text")
    assert "DDP401" in render(report(deadlock(str(tmp_path))), "text")
    assert report(deadlock(str(tmp_path / "gone.py"))).excerpts == ()


def test_the_header_has_the_hosts_and_the_versions_of_the_job_and_the_paths_of_lint() -> None:
    world = evidence()
    for rank in world.ranks[:2]:
        rank.torch, rank.python, rank.host = "2.13.0", "3.11.7", f"node0{rank.rank}"
    made = of_job("diagnose", [Attempt.of("attempt-0", world)], [deadlock()], subject=("x",))
    about = "on node00, node01, torch 2.13.0, Python 3.11.7, ddpdoctor"
    assert about in render(made, "html")
    assert about in render(made, "markdown")
    assert "node0" not in redacted(made).about
    assert "torch 2.13.0" in redacted(made).about
    lint = LintReport(paths=("train.py",), files=1).told()
    assert lint.subject == ("ddpdoctor", "lint", "train.py")
    assert lint.about.startswith("Python 3.")
