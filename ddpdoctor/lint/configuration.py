"""Settings: `[tool.ddpdoctor]` of the nearest pyproject.toml, under what the command line says."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from ddpdoctor.lint.engine.libraries import UnknownEffect, parse


class UsageError(ValueError):
    """What the user can cure, in one line."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What pyproject.toml may say, in [tool.ddpdoctor] or [tool.ddpdoctor.lint]."""

    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    baseline: str = ""
    effects: tuple[str, ...] = ()
    """What the user's own libraries do, in lines as those of engine/libraries."""
    folder: Path = Path()
    """Where the file lies: its paths and patterns are relative to it."""

    def ignored_for(self, path: str) -> tuple[str, ...]:
        """The codes that are ignored in a file."""
        if not self.per_file_ignores:
            return ()
        whole = Path(path).absolute()
        base = self.folder.absolute()
        shown = whole.relative_to(base).as_posix() if whole.is_relative_to(base) else str(whole)
        return tuple(
            code
            for pattern, codes in self.per_file_ignores
            if fnmatch(shown, pattern) or fnmatch(whole.name, pattern)
            for code in codes
        )


_LISTS = {"select", "extend-select", "ignore", "exclude", "effects"}


def load(start: Path, given: Path | None = None) -> Settings:
    """The settings that hold for a file or folder. Raises UsageError."""
    if given is not None and not given.is_file():
        raise UsageError(f"there is no configuration {given}")
    for file in [given] if given else _candidates(start):
        try:
            document = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError, RecursionError) as error:
            raise UsageError(f"{file} cannot be read: {error}") from error
        tool = document.get("tool", {})
        table = tool.get("ddpdoctor", {}) if isinstance(tool, dict) else {}
        if given or table:
            return _settings(file, table)
    return Settings()


def _candidates(start: Path) -> list[Path]:
    folder = start.absolute()
    folders = (folder, *folder.parents) if folder.is_dir() else tuple(folder.parents)
    return [file for each in folders if (file := each / "pyproject.toml").is_file()]


def _settings(file: Path, table: dict[str, Any]) -> Settings:
    own = table.get("lint", {})
    facts = {key: value for key, value in table.items() if key in (*_LISTS, *_OTHERS)} | own
    for key, value in facts.items():
        if key in _LISTS:
            if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
                raise UsageError(f"{file}: {key} must be a list of strings")
        elif key == "per-file-ignores":
            if not isinstance(value, dict) or not all(isinstance(v, list) for v in value.values()):
                raise UsageError(f"{file}: per-file-ignores must map patterns to lists of codes")
        elif key == "baseline":
            if not isinstance(value, str):
                raise UsageError(f"{file}: baseline must be a path")
        else:
            raise UsageError(f"{file}: [tool.ddpdoctor.lint] has no setting {key!r}")
    return Settings(
        select=tuple(facts.get("select", ())),
        extend_select=tuple(facts.get("extend-select", ())),
        ignore=tuple(facts.get("ignore", ())),
        exclude=tuple(facts.get("exclude", ())),
        per_file_ignores=tuple(
            (pattern, tuple(codes)) for pattern, codes in facts.get("per-file-ignores", {}).items()
        ),
        baseline=facts.get("baseline", ""),
        effects=_understood(file, facts.get("effects", [])),
        folder=file.parent,
    )


def _understood(file: Path, lines: list[str]) -> tuple[str, ...]:
    try:
        for line in lines:
            parse(line)
    except UnknownEffect as error:
        raise UsageError(f"{file}: effects: {error}") from error
    return tuple(lines)


_OTHERS = ("per-file-ignores", "baseline")


def matching(prefixes: tuple[str, ...]) -> set[str]:
    """The codes that codes, prefixes or names mean. Raises UsageError if one means none."""
    from ddpdoctor.lint.rules import all_rules  # late: most runs want all, and many none anew

    found: set[str] = set()
    for prefix in prefixes:
        wanted = prefix.strip()
        if wanted.upper() == "ALL":
            wanted = "DDP"
        hits = {
            rule.code
            for rule in all_rules()
            if wanted and (rule.code.startswith(wanted.upper()) or rule.name == wanted.lower())
        }
        if not hits:
            raise UsageError(f"no rule has the code, prefix or name {prefix!r}")
        found |= hits
    return found
