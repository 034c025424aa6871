"""The program as Python itself would print it, without comments: the control."""

from __future__ import annotations

from tests.lint.metamorphic.program import Program


def transform(program: Program) -> None:
    """Change nothing."""
