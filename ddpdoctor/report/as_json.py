"""A report for programs: one JSON document, described by `schema.json` beside this file.

python -m ddpdoctor.report.as_json > ddpdoctor/report/schema.json
"""

from __future__ import annotations

import json
from typing import Any

from ddpdoctor.report.model import Report
from ddpdoctor.report.output import Page


def render(report: Report, page: Page | None = None) -> str:
    """The whole report, as it is read back by `Report.model_validate_json`."""
    return document(report.model_dump(mode="json"), indent=2)


def document(told: Any, indent: int | None = None) -> str:
    """Anything as JSON that any reader takes: a path may hold bytes that are no text at all."""
    text = json.dumps(told, indent=indent, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode("utf-8") + "\n"


def schema() -> str:
    """The JSON schema of what `render` writes."""
    return json.dumps(Report.model_json_schema(mode="serialization"), indent=2) + "\n"


if __name__ == "__main__":
    print(schema(), end="")
