"""A report for programs: one JSON document, described by `schema.json` beside this file.

python -m ddpdoctor.report.as_json > ddpdoctor/report/schema.json
"""

from __future__ import annotations

import json

from ddpdoctor.report.check import CheckReport


def render(report: CheckReport) -> str:
    """The whole report, as it is read back by `CheckReport.model_validate_json`."""
    text = json.dumps(report.model_dump(mode="json"), indent=2, ensure_ascii=False)
    # A path may hold bytes that are no text at all, and no JSON either.
    return text.encode("utf-8", "replace").decode("utf-8") + "\n"


def schema() -> str:
    """The JSON schema of what `render` writes."""
    return json.dumps(CheckReport.model_json_schema(mode="serialization"), indent=2) + "\n"


if __name__ == "__main__":
    print(schema(), end="")
