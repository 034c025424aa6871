"""What names a finding for a server that compares commits: not its line, which moves."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path, PurePath
from urllib.parse import quote

from ddpdoctor.lint.rule import Diagnostic


class Fingerprints:
    """By file, code and text; the same text again in a file is told apart by its number."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str, str]] = Counter()

    def of(self, each: Diagnostic) -> str:
        """The fingerprint of the next finding: 16 hexadecimal digits, and the number."""
        key = (each.path, each.code, each.excerpt.strip())
        self._seen[key] += 1
        digest = hashlib.sha256(repr((*key, self._seen[key])).encode()).hexdigest()[:16]
        return f"{digest}:{self._seen[key]}"


def uri(path: str) -> str:
    """Relative to the working directory where it can be: servers want that."""
    pure = PurePath(path)
    here = Path.cwd()
    if pure.is_absolute() and pure.is_relative_to(here):
        pure = pure.relative_to(here)
    return quote(pure.as_posix())
