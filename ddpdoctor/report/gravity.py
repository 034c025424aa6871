"""How grave findings are, and which of them make a command fail: one law for all commands."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ddpdoctor.catalog import Finding

GRAVITY: dict[str, int] = {"unchecked": 0, "info": 0, "warning": 1, "error": 2, "never": 3}


class FailOn(StrEnum):
    """What makes a command fail: findings as grave as this, or graver."""

    never = "never"
    error = "error"
    warning = "warning"
    info = "info"
    unchecked = "unchecked"
    """All of them, and what could not be checked."""

    def is_reached(self, severities: Iterable[str]) -> bool:
        """Whether one of the findings' severities is as grave as this."""
        return any(GRAVITY[each] >= GRAVITY[self] for each in severities)

    def exit_code(self, severities: Iterable[str], *, unseen: bool, asked_for: bool = False) -> int:
        """1 for findings, else 3 for what could not be checked, else 0.

        `unseen` is whether there was any such thing, `asked_for` whether it was named by the user.
        """
        if self.is_reached(severities):
            return 1
        return 3 if asked_for or (unseen and self is FailOn.unchecked) else 0


def gravest_first(findings: Iterable[Finding], *, by_code: bool = False) -> list[Finding]:
    """Among equals the order stays, or is that of their codes and causes."""

    def place(each: Finding) -> tuple[int, str, str]:
        return -GRAVITY[each.severity], *((each.code, each.cause) if by_code else ("", ""))

    return sorted(findings, key=place)
