"""Comments that silence a finding: `# noqa: DDP401` and `# ddpdoctor: ignore[DDP401] reason`.

For ruff to accept the former: `external = ["DDP"]` under `[tool.ruff.lint]`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_NOQA = re.compile(r"#\s*noqa(?P<codes>\s*:\s*[A-Z]+\d+(?:[\s,]+[A-Z]+\d+)*)?(?=$|[\s#,.:])", re.I)
_OURS = re.compile(r"#\s*ddpdoctor:\s*ignore(?:\[(?P<codes>[^\]]*)\])?", re.I)


def is_suppressed(code: str, lines: Sequence[str], first: int, last: int) -> bool:
    """Whether a comment on the lines of a statement (from 1, both included) silences a code."""
    for line in lines[first - 1 : last]:
        if "#" in line and any(_silences(match, code) for match in _comments(line)):
            return True
    return False


def _comments(line: str) -> list[re.Match[str]]:
    return [match for pattern in (_NOQA, _OURS) for match in pattern.finditer(line)]


def _silences(match: re.Match[str], code: str) -> bool:
    given = match["codes"]
    if given is None:
        return True
    codes = re.findall(r"[A-Z]+\d+", given.upper())
    return any(code.startswith(each) for each in codes)
