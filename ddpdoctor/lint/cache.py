"""What is known of files by their content, so that a second run need not parse them.

JSON in an SQLite file: nothing is unpickled, and several runs may share it. Any trouble with the
cache only makes the run slower.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ddpdoctor import __version__
from ddpdoctor.lint.engine import source as sources
from ddpdoctor.lint.engine.survey import ClassSurvey, FunctionSurvey, Survey
from ddpdoctor.lint.judged import Judged
from ddpdoctor.lint.rule import Diagnostic, Edit, Fix, Related

_MAX_BYTES = 200_000_000


def default_folder() -> Path:
    """$XDG_CACHE_HOME/ddpdoctor, ~/.cache/ddpdoctor, on macOS ~/Library/Caches/ddpdoctor."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "ddpdoctor"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/ddpdoctor"
    return Path.home() / ".cache/ddpdoctor"


def _version() -> str:
    """Changes with every change of the linter, and with the Python that parses."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    facts = [(file.name, stat.st_size, stat.st_mtime_ns) for file in files if (stat := file.stat())]
    return hashlib.blake2b(
        repr((__version__, sys.version_info[:2], facts)).encode(), digest_size=8
    ).hexdigest()


class Cache:
    """Surveys and findings by content. With folder None it remembers nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._db: sqlite3.Connection | None = None
        if folder is None:
            return
        with self._forgiving():
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / "lint.sqlite3"
            if file.exists() and file.stat().st_size > _MAX_BYTES:
                file.unlink()
            self._db = sqlite3.connect(file, timeout=0.5)
            self._db.execute("PRAGMA synchronous=OFF")
            self._db.execute("CREATE TABLE IF NOT EXISTS known (key TEXT PRIMARY KEY, value TEXT)")
            self._version = _version()

    @property
    def is_open(self) -> bool:
        """Whether anything is remembered."""
        return self._db is not None

    def survey(self, path: str, data: bytes) -> tuple[str, Survey, tuple[str, ...]] | None:
        """(digest, survey, words) of a file with this content."""
        digest = sources.digest(data)
        entry = self._get(f"s{digest}")
        return (digest, _survey(path, entry["survey"]), tuple(entry["words"])) if entry else None

    def keep_survey(self, digest: str, survey: Survey, words: tuple[str, ...]) -> None:
        """Remember a survey."""
        if self._db is not None:
            facts = asdict(survey)
            del facts["path"]
            self._put(f"s{digest}", {"survey": facts, "words": words})

    def judged(self, path: str, around: str, digest: Callable[[str], str]) -> Judged | None:
        """What came of running a file, if all files that were run with it are as they were."""
        entry = self._get(f"j{digest(path)}{around}{path}") if self._db is not None else None
        if entry is None or any(digest(file) != known for file, known in entry["files"].items()):
            return None
        return Judged(
            path,
            [_diagnostic(each) for each in entry["found"]],
            {(file, line): [_diagnostic(d) for d in found] for file, line, found in entry["alone"]},
            frozenset((file, line) for file, line in entry["visited"]),
            frozenset((file, line, code) for file, line, code in entry["right"]),
            tuple(entry["files"]),
            is_cut=entry["is_cut"],
        )

    def keep_judged(self, judged: Judged, around: str, digest: Callable[[str], str]) -> None:
        """Remember what came of running a file, unless something went wrong."""
        if self._db is not None and not judged.troubles:
            facts = {
                "found": [asdict(each) for each in judged.found],
                "alone": [(*at, [asdict(d) for d in found]) for at, found in judged.alone.items()],
                "visited": sorted(judged.visited),
                "right": sorted(judged.right),
                "is_cut": judged.is_cut,
                "files": {file: digest(file) for file in judged.files},
            }
            self._put(f"j{digest(judged.path)}{around}{judged.path}", facts)

    def close(self) -> None:
        """Write what is new."""
        with self._forgiving():
            if self._db is not None:
                self._db.commit()
                self._db.close()
        self._db = None

    def _get(self, key: str) -> Any:
        with self._forgiving():
            if self._db is not None:
                row = self._db.execute(
                    "SELECT value FROM known WHERE key = ?", (self._version + key,)
                ).fetchone()
                return json.loads(row[0]) if row else None
        return None

    def _put(self, key: str, value: Any) -> None:
        with self._forgiving():
            if self._db is not None:
                self._db.execute(
                    "INSERT OR REPLACE INTO known VALUES (?, ?)",
                    (self._version + key, json.dumps(value)),
                )

    @contextmanager
    def _forgiving(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, ValueError, RuntimeError):
            self._db = None


def _survey(path: str, facts: dict[str, Any]) -> Survey:
    functions = {name: FunctionSurvey(**each) for name, each in facts["functions"].items()}
    classes = {
        name: ClassSurvey(tuple(each["bases"]), each["types"])
        for name, each in facts["classes"].items()
    }
    return Survey(path, facts["imports"], facts["stars"], functions, classes)


def _diagnostic(facts: dict[str, Any]) -> Diagnostic:
    fix = facts.pop("fix")
    if fix:
        edits = tuple(
            Edit((e["start"][0], e["start"][1]), (e["end"][0], e["end"][1]), e["text"])
            for e in fix["edits"]
        )
        facts["fix"] = Fix(edits, fix["safe"])
    facts["notes"] = tuple(facts["notes"])
    facts["related"] = tuple(Related(**each) for each in facts["related"])
    facts["statement"] = tuple(facts["statement"])
    return Diagnostic(**facts)
