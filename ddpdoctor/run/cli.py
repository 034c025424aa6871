"""The command `ddpdoctor run`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ddpdoctor.complaints import Complaint, complaining_about, telling_of_faults
from ddpdoctor.options import Asked, Hosts, RedactOption, reporting
from ddpdoctor.report import output
from ddpdoctor.report.formats import ReportFormat
from ddpdoctor.report.gravity import FailOn

if TYPE_CHECKING:
    from ddpdoctor.report.model import EndedBy, Report
    from ddpdoctor.run.audience import Audience
    from ddpdoctor.run.session import Session
    from ddpdoctor.run.teller import Teller


@reporting(FailOn.error)
def run(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="As you would type it.")],
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Leave a job that is proven dead as it is.")
    ] = False,
    digest_every: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Compare the ranks' parameters every N optimizer steps too, not only at steps "
            "1, 2, 4, 8, ...",
        ),
    ] = 0,
    hosts: Annotated[
        Hosts,
        typer.Option(help="Meet the doctors of the job's other hosts: one verdict, on the first."),
    ] = Hosts.auto,
    run_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where to write; default: the last 10 in reports/. On storage that all hosts see, "
            "their doctors meet there.",
        ),
    ] = None,
    redact: RedactOption = False,
    tui: Annotated[
        bool, typer.Option("--tui", help="Show the ranks on the whole terminal; q leaves that.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show what the launcher says of ranks that failed.")
    ] = False,
    *,
    asked: Asked,
) -> None:
    """Run your own training command, and say what is wrong with it.

    ddpdoctor run -- torchrun --nproc-per-node=4 train.py

    The command runs as without the doctor: same output, signals and exit code. A deadlock is
    proven, told, and ended. Nothing is written while nothing is wrong.

    Exit code: the job's own; 1 if the doctor ended it, or if it ended well with a finding as grave
    as --fail-on; 2 it could not be started.
    """
    if command[0].startswith("-"):
        raise Complaint(f"there is no option {command[0]}")
    if asked.format_ is not ReportFormat.text and asked.target is None:
        raise Complaint(f"--format {asked.format_} needs -o FILE: stdout belongs to the job")

    from ddpdoctor.evidence import OUTPUT
    from ddpdoctor.run import folder, session
    from ddpdoctor.run.job import CannotStart, Signals, is_terminal
    from ddpdoctor.run.teller import Teller

    if tui and not (is_terminal() and sys.stdin.isatty() and sys.stdout.isatty()):
        raise Complaint("--tui needs a terminal")

    teller = Teller(command, output.Page.of(sys.stderr, asked.colour.value), redact=redact)
    mistakes = complaining_about(CannotStart, folder.UsedBefore)
    with mistakes, folder.taken(run_dir) as chosen, Signals() as signals:
        options = session.RunOptions(
            command=command,
            run_dir=chosen,
            shared=run_dir and run_dir.resolve(),
            keep_going=keep_going,
            alone=hosts is Hosts.off,
            digest_every=digest_every,
            output=chosen / OUTPUT if tui and chosen is not None else None,
            verbose=verbose,
        )
        with _view(options.output, teller) as audience:
            outcome = session.run(options, signals, audience)
        code = outcome.exit_code
        with telling_of_faults():
            report = _report(outcome)
            unseen = bool(report.not_seen)
            code = code or asked.threshold.exit_code(report.severities, unseen=unseen)
            teller.conclude(report, outcome.last_words, outcome.summary)
            _write(report, asked, chosen, redact=redact)
    raise typer.Exit(code)


@contextlib.contextmanager
def _view(output: Path | None, teller: Teller) -> Iterator[Audience]:
    """Who is told while the job goes on: the whole terminal, if its output goes to a file."""
    from ddpdoctor.run.audience import Audience
    from ddpdoctor.run.job import is_terminal

    if output is not None:
        from ddpdoctor.run.screen import Screen

        with Screen(output, teller.found) as screen:
            yield Audience(found=screen.found, withdrawn=screen.withdrawn, look=screen.look)
        return
    from ddpdoctor.run.status import StatusLine

    with StatusLine(enabled=is_terminal()) as status:
        yield Audience(teller.found, teller.stalled, teller.went_on, teller.withdrawn, status.look)


def _write(report: Report, asked: Asked, run_dir: Path | None, *, redact: bool) -> None:
    """To the file that was named, and beside what the ranks wrote."""
    from ddpdoctor.evidence import REPORT
    from ddpdoctor.report.model import render
    from ddpdoctor.report.redaction import redacted

    if asked.target:
        with telling_of_faults():
            shown = redacted(report) if redact else report
            output.write_file(asked.target, render(shown, asked.format_.value))
    if run_dir and run_dir.is_dir():  # else it is told that nothing could be written
        output.write_file(run_dir / REPORT, render(report, "json"))


def _report(outcome: Session) -> Report:
    from ddpdoctor.evidence import noted_deaths
    from ddpdoctor.report.job import of_job
    from ddpdoctor.report.lives import Attempt

    run_dir = outcome.options.run_dir
    ended_by: EndedBy = "doctor" if outcome.ended_by_doctor else "job"
    return of_job(
        "run",
        [Attempt.of(world.folder.name, world.evidence) for world in outcome.worlds.all],
        outcome.findings,
        subject=outcome.options.command,
        started=outcome.started,
        seconds=outcome.seconds,
        status=outcome.status,
        ended_by="signal" if outcome.interrupted else ended_by,
        children=noted_deaths(run_dir).values() if run_dir else (),
        proven_after=outcome.proven_after,
        not_seen=outcome.not_seen,
        unread=outcome.unread,
        run_dir=run_dir,
    )
