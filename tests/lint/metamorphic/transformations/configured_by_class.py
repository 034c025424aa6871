"""Literals that library calls are given come from a dataclass with defaults."""

from __future__ import annotations

from tests.lint.metamorphic.program import Program
from tests.lint.metamorphic.transformations.configured import taken


def transform(program: Program) -> None:
    taken(program, lambda table, key: f"{table}.{key}", _dataclass)


def _dataclass(table: str, values: dict[str, object]) -> str:
    fields = "".join(f"    {key}: {type(v).__name__} = {v!r}\n" for key, v in values.items())
    kind = table.title()
    return (
        f"from dataclasses import dataclass\n@dataclass(frozen=True)\nclass {kind}:\n{fields}"
        f"{table} = {kind}()"
    )
