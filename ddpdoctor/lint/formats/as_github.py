"""Annotations for a GitHub workflow."""

from __future__ import annotations

from ddpdoctor.lint.report import Report


def render(report: Report, colour: bool) -> str:
    """One workflow command per finding."""
    lines = []
    for each in report.diagnostics:
        level = "error" if each.confidence == "certain" else "warning"
        place = f"file={_property(each.path)},line={each.line},endLine={each.end_line}"
        place += f",col={each.column},title={_property(f'{each.code} {each.name}')}"
        text = "\n".join(
            [each.message, *each.notes, *([f"help: {each.help}"] if each.help else [])]
        )
        lines.append(f"::{level} {place}::{_data(text)}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
