"""The command `ddpdoctor run`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ddpdoctor.complaints import Complaint, complaining_about, telling_of_faults
from ddpdoctor.options import (
    Colour,
    ColourOption,
    FailOn,
    RedactOption,
    ReportFormat,
    ReportFormatOption,
)
from ddpdoctor.report import output

if TYPE_CHECKING:
    from ddpdoctor.catalog import Finding
    from ddpdoctor.report.run import RunReport
    from ddpdoctor.run.session import Session


def run(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND...", help="As you would type it.")
    ],
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Leave a job that is proven dead as it is.")
    ] = False,
    fail_on: Annotated[
        FailOn, typer.Option(help="Exit with 1 if a job that ended well shows this, or worse.")
    ] = FailOn.error,
    digest_every: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Compare the ranks' parameters every N optimizer steps too, not only at steps "
            "1, 2, 4, 8, ...",
        ),
    ] = 0,
    run_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to write; default: the last 10 in reports/."),
    ] = None,
    format_: ReportFormatOption = ReportFormat.text,
    target: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the report to this file."),
    ] = None,
    redact: RedactOption = False,
    colour: ColourOption = Colour.auto,
) -> None:
    """Run your own training command, and say what is wrong with it.

    ddpdoctor run -- torchrun --nproc-per-node=4 train.py

    The command runs as without the doctor: same output, signals and exit code. A deadlock is
    proven, told, and ended. Nothing is written while nothing is wrong. Exit code: the job's own; 1
    if the doctor ended it, or if it ended well with a finding as grave as --fail-on.
    """
    if format_ is not ReportFormat.text and target is None:
        raise Complaint(f"--format {format_} needs -o FILE: stdout belongs to the job")
    if target:
        output.check_writable(target)

    from ddpdoctor.report.run import render
    from ddpdoctor.report.run.redaction import redacted
    from ddpdoctor.run import folder, session
    from ddpdoctor.run.job import CannotStart, exit_code, is_terminal
    from ddpdoctor.run.status import StatusLine

    with complaining_about(folder.UsedBefore):
        chosen = folder.chosen(run_dir) if run_dir else folder.default()
    if run_dir:
        output.make_folder(run_dir)
    options = session.RunOptions(
        command=command, run_dir=chosen, keep_going=keep_going, digest_every=digest_every
    )
    page = output.Page.of(sys.stderr, colour.value)
    teller = _Teller(command, page, redact=redact)
    with complaining_about(CannotStart), StatusLine(enabled=is_terminal()) as status:
        outcome = session.run(options, teller.live, status.look)
    failing = outcome.ended_by_doctor
    with telling_of_faults():
        report = _report(outcome)
        teller.conclude(report)
        if chosen:
            with contextlib.suppress(output.OutputError):
                output.write_file(chosen / "report.json", render(report, "json"))
        if target:
            shown = redacted(report) if redact else report
            output.write_file(target, render(shown, format_.value))
        failing = failing or report.fails_on(fail_on.value)
    raise typer.Exit(exit_code(outcome.status) if outcome.status else failing)


def _report(outcome: Session) -> RunReport:
    from ddpdoctor.report.run import Attempt, RunReport

    ended_by: Literal["job", "signal"] = "signal" if outcome.interrupted else "job"
    return RunReport.of(
        "run",
        [Attempt.of(world.folder.name, world.evidence) for world in outcome.worlds.all],
        outcome.findings,
        command=outcome.options.command,
        started=outcome.started,
        seconds=outcome.seconds,
        status=outcome.status,
        ended_by="doctor" if outcome.ended_by_doctor else ended_by,
        proven_after=outcome.proven_after,
        not_seen=outcome.not_seen,
        run_dir=outcome.options.run_dir,
    )


class _Teller:
    """Tells findings on stderr: at once while the job goes on, the others at its end."""

    def __init__(self, command: Sequence[str], page: output.Page, *, redact: bool) -> None:
        self._command, self._page, self._redact = command, page, redact
        self._told: set[tuple[str, str]] = set()

    def live(self, finding: Finding) -> None:
        """Tell one finding about a job that goes on, if it calls anything wrong."""
        from ddpdoctor.report.run import RunReport, as_text

        if finding.severity == "info":
            return
        self._told.add(_identity(finding))
        report = self._public(RunReport.of("run", [], [finding], command=self._command))
        self._write(as_text.finding(report, report.findings[0], self._page))

    def conclude(self, report: RunReport) -> None:
        """Tell what has not been told yet, what could not be seen, and a summary."""
        from ddpdoctor.report.run import render, words

        if report.exit_code == 0 and not report.fails_on("warning"):
            # A job that is well is not spoken of: what is merely of interest is in report.json.
            report = report.model_copy(update={"findings": ()})
        new = tuple(each for each in report.findings if _identity(each) not in self._told)
        text = render(self._public(report.model_copy(update={"findings": new})), "text", self._page)
        if report.findings and not new:
            text += f"{words.summary(report)}\n"
        self._write(text)

    def _write(self, text: str) -> None:
        """Nobody may be there to read it: that is no reason to stop watching."""
        with contextlib.suppress(output.OutputError, BrokenPipeError):
            output.write(sys.stderr, text)

    def _public(self, report: RunReport) -> RunReport:
        from ddpdoctor.report.run.redaction import redacted

        return redacted(report) if self._redact else report


def _identity(finding: Finding) -> tuple[str, str]:
    return finding.code, str(finding.place)
