"""A file of old findings, so that only new ones are shown.

A finding is known by file, code and the text of its line, not by the line's number: code above it
may come and go.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from ddpdoctor.lint.configuration import UsageError
from ddpdoctor.lint.rule import Diagnostic

_Key = tuple[str, str, str]


def read(file: Path) -> Counter[_Key]:
    """The old findings, with how often each occurs. Raises UsageError."""
    if file.exists() and not file.is_file():
        raise UsageError(f"baseline {file} is not a file")
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        return Counter(
            {(e["path"], e["code"], e["line"]): int(e["count"]) for e in document["findings"]}
        )
    except OSError as error:
        raise UsageError(f"baseline {file} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise UsageError(f"{file} is not a baseline of ddpdoctor lint") from error


def write(file: Path, found: Iterable[Diagnostic]) -> int:
    """Write all findings as old; how many. Raises UsageError."""
    counts = Counter(_key(file, each) for each in found)
    entries = [
        {"path": path, "code": code, "line": line, "count": count}
        for (path, code, line), count in sorted(counts.items())
    ]
    text = json.dumps({"version": 1, "findings": entries}, indent=1, ensure_ascii=False) + "\n"
    new = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(file)
    except OSError as error:
        raise UsageError(f"baseline {file} cannot be written: {error.strerror}") from error
    return counts.total()


def without(file: Path, found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The findings that the baseline does not know."""
    left = read(file)
    new = []
    for each in found:
        key = _key(file, each)
        if left[key] > 0:
            left[key] -= 1
        else:
            new.append(each)
    return new


def _key(file: Path, each: Diagnostic) -> _Key:
    path, base = Path(each.path).absolute(), file.absolute().parent
    shown = path.relative_to(base).as_posix() if path.is_relative_to(base) else path.as_posix()
    return (shown, each.code, each.excerpt.strip()[:200])
