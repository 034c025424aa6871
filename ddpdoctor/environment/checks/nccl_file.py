"""NCCL's configuration files against the environment, and lines of them that say nothing."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Finding
from ddpdoctor.environment.checks.finding import finding, setting, unset
from ddpdoctor.environment.model import Environment, FileSetting
from ddpdoctor.environment.variables import for_nccl


def overruled(environment: Environment) -> Iterator[Finding]:
    """DDP704: a file says one thing, and the environment or an earlier file another."""
    for one in _settings(environment):
        counts = environment.variable(one.name)
        if counts is None or counts.value == one.value or not for_nccl(one.name):
            continue
        by = counts.file or "the environment"
        yield finding(
            "DDP704",
            "info",
            f"{setting(one.name, one.value)} in NCCL's file is overruled by {by}",
            "Keep one of the two.",
            notes=(
                f"line {one.line} of {one.file}",
                f"{setting(counts.name, counts.value)} counts",
                "harmless if you meant it",
            ),
        )


def unread(environment: Environment) -> Iterator[Finding]:
    """DDP109: lines of NCCL's files that say nothing to it, or a file that is not there."""
    harmless = environment.lacks_nccl
    aside = ("harmless here: torch has no NCCL",) if harmless else ()
    for one in _settings(environment):
        if for_nccl(one.name):
            continue
        yield finding(
            "DDP109",
            "info" if harmless else "warning",
            f"line {one.line} of {one.file} sets nothing that NCCL reads",
            "Write NAME=VALUE, without blanks, quotes or `export`, and with NCCL's own names.",
            notes=(f"it sets a variable of the name {one.name!r}", *aside),
        )
    named = environment.variable("NCCL_CONF_FILE")
    if named is None or not named.value or named.redacted or named.file is not None:
        return
    if isinstance(environment.nccl_file, tuple) and not any(
        one.file.endswith(named.value) for one in environment.nccl_file
    ):
        yield finding(
            "DDP109",
            "info" if harmless else "warning",
            f"{setting(named.name, named.value)} sets nothing: it is missing or empty",
            "Give its whole path: NCCL knows no ~, and says nothing of a file that is not there.",
            notes=("~/.nccl.conf is not read where this is set", *aside),
            commands=unset(named.name),
        )


def _settings(environment: Environment) -> tuple[FileSetting, ...]:
    return environment.nccl_file if isinstance(environment.nccl_file, tuple) else ()
