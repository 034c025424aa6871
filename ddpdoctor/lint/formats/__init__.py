"""One renderer per format: a Report in, text out."""

from __future__ import annotations

from collections.abc import Callable

from ddpdoctor.lint.report import Report

FORMATS = ("text", "concise", "json", "sarif", "github", "gitlab", "junit")


def renderer(name: str) -> Callable[[Report, bool], str]:
    """The renderer of a format: (report, with colour) to text."""
    if name == "text":
        from ddpdoctor.lint.formats.as_text import render
    elif name == "concise":
        from ddpdoctor.lint.formats.as_concise import render
    elif name == "json":
        from ddpdoctor.lint.formats.as_json import render
    elif name == "sarif":
        from ddpdoctor.lint.formats.as_sarif import render
    elif name == "github":
        from ddpdoctor.lint.formats.as_github import render
    elif name == "gitlab":
        from ddpdoctor.lint.formats.as_gitlab import render
    elif name == "junit":
        from ddpdoctor.lint.formats.as_junit import render
    else:
        raise ValueError(f"no format {name}")
    return render
