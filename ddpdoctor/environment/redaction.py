"""Keeps secrets out of everything that is shown or written.

Over-redaction is harmless here and a leak is not: when in doubt, a value is hidden.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from ddpdoctor.environment.model import printable

HIDDEN = "***"

# No word boundaries: HFTOKEN is a secret too. NCCL_IB_PKEY, a partition number, is none.
_SECRET_NAME = re.compile(
    r"secret|token|passw|passphrase|credential|api.?key|access|private|auth|signature|cookie"
    r"|(^|[_-])(key|pwd)s?([_-]|$)|[_-]pat$",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*://)\S*@"  # up to the last @: a password may hold one itself
    r"|(?P<user>[^\s/:@]+):\S+@"
    r"|(?P<parameter>[?&;][^=&;\s]*(?:secret|token|passw|key|sig|auth|credential)[^=&;\s]*=)[^&;\s]+"
    r"|(?P<bearer>\b(?:bearer|basic)\s+)\S+"
    r"|\b(?:gh[opsur]_|github_pat_|glpat-|hf_|sk-|xox[abp]-|AKIA|eyJ)[\w./+=-]{8,}",
    re.IGNORECASE,
)
# A shorter secret cannot be told from an ordinary word when it turns up elsewhere.
_SHORTEST_SECRET = 6
_LONGEST_LINE = 200


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name holds something to hide, whatever its value."""
    return name != "PWD" and _SECRET_NAME.search(name) is not None  # the shell's folder


class Redactor:
    """Hides the secrets of one environment, wherever they turn up."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        secrets = {
            form
            for name, value in environ.items()
            if is_secret_name(name) and len(value) >= _SHORTEST_SECRET
            for form in (value, printable(value))
        }
        # Longest first, or the rest of a secret that begins with another one would stay.
        ordered = sorted(secrets, key=lambda secret: (-len(secret), secret))
        self._known = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def value(self, name: str, value: str) -> str:
        """The value of a variable, fit to be shown."""
        if is_secret_name(name) and value:
            return HIDDEN
        return self.text(value)

    def text(self, text: str) -> str:
        """Any text, without the secret values of this environment and without passwords in URLs."""
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        return _SECRET_VALUE.sub(_hide, text)


def safe_line(line: str) -> str:
    """A line that something else has said, without the secrets of this process's environment.

    At most 200 characters, cut only then: half of a URL no longer shows where its password ends.
    """
    return Redactor(os.environ).text(line)[:_LONGEST_LINE]


def first_line(error: Exception) -> str:
    """What an error says first, fit to be shown; its type where it says nothing."""
    said = str(error).strip()
    return safe_line(said.splitlines()[0] if said else type(error).__name__)


def _hide(match: re.Match[str]) -> str:
    if match["user"]:
        return f"{HIDDEN}@"
    kept = match["scheme"] or match["parameter"] or match["bearer"] or ""
    return f"{kept}{HIDDEN}{'@' if match['scheme'] else ''}"
