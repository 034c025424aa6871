"""Whether `check` says here what it said where the reference report was made.

    ddpdoctor check --nproc 4 --format markdown -o fresh.md
    python -m tests.reference reports/reference/gloo-4-ranks.md fresh.md

Compared are the verdicts, form by form. What could not be checked on one of the two machines is
counted and is no difference; nor is what a race decides, of which a report says in how many of its
launches it was seen. A fix has to hold in all.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

NOT_CHECKED = "not checked"
BY_LUCK = "by luck"
_NO_DIFFERENCE = {NOT_CHECKED, BY_LUCK}
Form = tuple[str, str, str]
"""Code, kind, and what the form does."""


def verdicts(report: str) -> dict[Form, str]:
    """The verdicts of a report in Markdown, with the asterisks of those that are problems."""
    found: dict[Form, str] = {}
    code = ""
    for line in report.splitlines():
        if heading := re.match(r"## (DDP\d{3}) ", line):
            code = heading[1]
        elif row := re.match(r"\| (broken|advice|fix) \| (.+?) \| (.+?) \| (.*)", line):
            is_luck = row[1] != "fix" and re.search(r"in \d+ of \d+ launches", row[4])
            found[code, row[1], row[3]] = BY_LUCK if is_luck else row[2]
    return found


def differences(reference: dict[Form, str], fresh: dict[Form, str]) -> list[str]:
    """One line for each verdict that is another one, or that only one of the two has."""
    lines = []
    for form in sorted({*reference, *fresh}):
        was, is_now = reference.get(form, "absent"), fresh.get(form, "absent")
        if was != is_now and _NO_DIFFERENCE.isdisjoint((was, is_now)):
            lines.append(f"{' | '.join(form)}: {was} in the reference, {is_now} here")
    return lines


def main() -> int:
    """Print the differences; 1 if there are any, or if nothing was compared."""
    reference, fresh = (verdicts(Path(name).read_text("utf-8")) for name in sys.argv[1:])
    lines = differences(reference, fresh)
    unchecked = sum(NOT_CHECKED in (reference.get(f), fresh.get(f)) for f in {*reference, *fresh})
    print("\n".join([*lines, f"{len(fresh)} verdicts, {len(lines)} different from the reference"]))
    if unchecked:
        print(f"{unchecked} could not be checked here or there")
    return int(bool(lines) or len(fresh) <= unchecked)


if __name__ == "__main__":
    raise SystemExit(main())
