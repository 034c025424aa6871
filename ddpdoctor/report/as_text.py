"""A report for a person at a terminal: at most 100 columns, and readable without colour."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ddpdoctor.catalog import Status, Verdict
from ddpdoctor.report.check import CheckReport, Heading
from ddpdoctor.report.output import Page
from ddpdoctor.report.words import (
    KINDS,
    STATUSES,
    advice_sentence,
    count_sentence,
    details,
    one_line,
    what_to_do,
)

_LOOKS: dict[Status, tuple[str, str]] = {
    "recognised": ("●", "cyan"),
    "misdiagnosed": ("✗", "bold red"),
    "not reproduced": ("○", "yellow"),
    "holds": ("✓", "green"),
    "in part": ("!", "yellow"),
    "aid": ("○", "cyan"),
    "fails": ("✗", "bold red"),
    "not checked": ("?", "yellow"),
}
_LEGEND = (
    "\nRecognised: the diagnosis named this failure, on the right ranks and line. Holds: all ranks "
    "ended well, every assertion in them held, and the diagnosis found nothing. In brackets: which "
    "document advises it; `ddpdoctor explain CODE` names it."
)
_PLACE = r"[\w.-]+\.py:\d+"


def render(report: CheckReport, page: Page | None = None) -> str:
    """The report laid out for a page; by default one of 100 columns without colour."""
    parts: list[RenderableType] = [_machine(report)]
    for heading in report.pitfalls:
        parts += [_title(heading), _rows(report, heading.code)]
    parts.append(Text(_LEGEND, "dim"))
    parts += [*_what_to_do(report), *_summary(report)]
    return (page or Page()).lay_out(*parts)


def _machine(report: CheckReport) -> Text:
    return Text.assemble(
        ("ddpdoctor check", "bold"),
        f"  {report.nproc} ranks on {report.backend}, torch {report.torch}, "
        f"Python {report.python}, {report.platform}",
    )


def _title(heading: Heading) -> Text:
    return Text.assemble(
        (f"\n{heading.code} {heading.title}", "bold"),
        f"  {', '.join(heading.symptoms)}\n{heading.summary}",
    )


def _rows(report: CheckReport, code: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=3, justify="right")
    grid.add_column(width=6)
    grid.add_column(width=15)
    grid.add_column(ratio=1)
    for verdict in report.of_pitfall(code):
        mark, style = _LOOKS[verdict.status]
        grid.add_row(
            Text(mark, style),
            KINDS[verdict.kind],
            Text(STATUSES[verdict.status], style),
            _what_was_seen(verdict, report.broken(code)),
        )
    return grid


def _what_was_seen(verdict: Verdict, broken: Verdict | None) -> Text:
    said = Text(one_line(verdict.summary))
    if verdict.source:
        said.append(f" [{one_line(verdict.source)}]", "dim")
    if verdict.status != "holds":
        said.append(f"\n{details(verdict, broken)}", "dim")
    said.highlight_regex(_PLACE, "bold not dim")
    said.highlight_regex("NOT RECOGNISED", "bold red not dim")
    return said


def _what_to_do(report: CheckReport) -> Iterator[RenderableType]:
    grid = Table.grid(padding=(0, 1))
    for code, remedy, command in what_to_do(report):
        grid.add_row(f"  {code}", Text.assemble(remedy, (f"\n$ {command}", "cyan")))
    if grid.row_count:
        yield Text("\nWhat to do", "bold")
        yield grid


def _summary(report: CheckReport) -> Iterator[RenderableType]:
    yield Text(f"\n{advice_sentence(report)}".rstrip(), "bold")
    yield Text(count_sentence(report), "red" if report.summary.problems else "green")
    for reason, names in report.not_checked.items():
        yield Text(f"Not checked: {', '.join(names)}: {one_line(reason)}", "yellow")
