"""One renderer per format: a Report in, text out."""

from __future__ import annotations

from collections.abc import Callable

from ddpdoctor.lint.report import Report, told
from ddpdoctor.report.model import FORMATS as SHARED
from ddpdoctor.report.model import render as render_shared

FORMATS = ("text", "concise", "json", "github", "gitlab", *SHARED)


def renderer(name: str) -> Callable[[Report, bool], str]:
    """The renderer of a format: (report, with colour) to text."""
    if name == "text":
        from ddpdoctor.lint.formats.as_text import render
    elif name == "concise":
        from ddpdoctor.lint.formats.as_concise import render
    elif name == "json":
        from ddpdoctor.lint.formats.as_json import render
    elif name == "github":
        from ddpdoctor.lint.formats.as_github import render
    elif name == "gitlab":
        from ddpdoctor.lint.formats.as_gitlab import render
    else:
        return lambda report, colour: render_shared(told(report), name)
    return render
