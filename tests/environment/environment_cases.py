"""A fault of the environment beside the same thing done right."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ddpdoctor.catalog import Finding, Severity
from ddpdoctor.environment.checks.finding import TITLES

Diagnose = Callable[..., list[Finding]]

TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "a",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29512",
    "RANK": "1",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
    "GROUP_WORLD_SIZE": "1",
}


@dataclass(frozen=True)
class Case:
    """What must be found under `wrong` and `facts`, and not under `right` and `right_facts`."""

    code: str
    severity: Severity
    wrong: dict[str, str] = field(default_factory=dict)
    right: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    right_facts: dict[str, Any] | None = None
    """By default the same facts: then the variables make the difference."""

    def __str__(self) -> str:
        values = (f"{name}={value}" for name, value in self.wrong.items())
        return " ".join((self.code, self.severity, *values, *self.facts))


def check(case: Case, diagnose: Diagnose) -> None:
    found = diagnose(case.wrong, **case.facts)
    assert (case.code, case.severity) in [(one.code, one.severity) for one in found]
    for one in found:
        check_message(one)
    right_facts = case.facts if case.right_facts is None else case.right_facts
    clean = diagnose(case.right, **right_facts)
    assert (case.code, case.severity) not in [(one.code, one.severity) for one in clean]


def check_message(one: Finding) -> None:
    """The first line fits, the cure is a sentence, and what is harmless says so."""
    assert one.title == TITLES[one.code]
    assert len(f"{one.code} {one.cause}") <= 80
    assert not one.cause.endswith(".")
    assert one.cure.text[0].isupper()
    assert any("harmless" in note for note in one.evidence) == (one.severity == "info")
