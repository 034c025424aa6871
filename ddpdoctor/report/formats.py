"""The formats of a report, the same for all commands."""

from __future__ import annotations

from enum import StrEnum


class ReportFormat(StrEnum):
    """Each is a file `as_FORMAT` beside this one, with a `render(report, page)`."""

    text = "text"
    concise = "concise"
    json = "json"
    junit = "junit"
    markdown = "markdown"
    sarif = "sarif"
    html = "html"
    perfetto = "perfetto"
    github = "github"
    gitlab = "gitlab"
