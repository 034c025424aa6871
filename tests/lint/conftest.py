from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ddpdoctor.lint.command import LintOptions, run

Lint = Callable[..., tuple[int, str, str]]


@pytest.fixture
def lint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lint:
    """Run the command in an empty folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache-of-the-test"))

    def lint_(
        *paths: str, stdin: bytes | None = None, format: str = "concise", **options: object
    ) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        chosen = LintOptions(paths=paths or (".",), format=format, cache=False)
        chosen = replace(chosen, **options)  # type: ignore[arg-type]
        return run(chosen, stdin, out, err), out.getvalue(), err.getvalue()

    return lint_
