"""Keeps secrets out of everything that is shown or written.

Over-redaction is harmless here and a leak is not: when in doubt, a value is hidden.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus

from ddpdoctor.environment.model import printable

HIDDEN = "***"

# No word boundaries: HFTOKEN is a secret too. NCCL_IB_PKEY, a partition number, is none.
_SECRET_NAME = re.compile(
    r"secret|token|passw|passphrase|credential|api.?key|access|private|auth|signature|cookie"
    r"|webhook|(^|[_-])(key|pwd|pass|dsn)s?([_-]|$)|[_-]pat$",
    re.IGNORECASE,
)
# In the middle of a text, where "access" and "keys:" are ordinary words. No quantifier here may
# look over the same characters twice: values are as long as 128 KiB.
_NAMED = (
    r"(?:secret|token|passw|passphrase|credential|api.?key|(?:access|private).?key|auth|signature"
    r"|cookie|(?<=[_-])keys?|(?<![^\W_])(?:pwd|pass|sig)s?)(?![^\W_]{16})[\w.-]{0,32}"
)
_SECRET_VALUE = re.compile(
    r"(?P<parameter>[?&;](?=[^?=&;\s]{0,64}?(?:secret|token|passw|key|sig|auth|credential))"
    r"[^?=&;\s]{0,64}=)[^&;\s]+"
    r"|(?P<bearer>\b(?:bearer|basic)\s{1,8}+)\S+"
    rf"|(?P<named>{_NAMED}[\"']?\s{{0,8}}+[=:]\s{{0,8}}+(?:(?:bearer|basic)\s{{1,8}}+)?"
    rf"|--[\w-]{{0,32}}?{_NAMED}\s{{1,8}}+)(?:\"[^\"]*+\"|'[^']*+'|\S+)",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"\b(?:gh[opsur]_|github_pat_|glpat-|hf_|sk-|xox[abp]-|AKIA|AIza|npm_|pypi-|eyJ)"
    r"[\w./+=-]{8,}"
)
_WORD = re.compile(r"\S++")
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
            if is_secret_name(name)
            for form in _written(value)
            if len(form) >= _SHORTEST_SECRET
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
        # First, as an @ in such a value looks like the end of a password in front of a host.
        text = _SECRET_VALUE.sub(_hide_behind_the_last_at, text)
        text = _WORD.sub(_without_password, text)
        return _TOKEN.sub(HIDDEN, _SECRET_VALUE.sub(_hide, text))


def safe_line(line: str) -> str:
    """A line that something else has said, without the secrets of this process's environment.

    At most 200 characters, cut only then: half of a URL no longer shows where its password ends.
    """
    return Redactor(os.environ).text(line)[:_LONGEST_LINE]


def first_line(error: Exception) -> str:
    """What an error says first, fit to be shown; its type where it says nothing."""
    said = str(error).strip()
    return safe_line(said.splitlines()[0] if said else type(error).__name__)


def _written(secret: str) -> Iterator[str]:
    """A secret as it is, and as messages and addresses write it."""
    for part in (secret, secret.strip(), *map(str.strip, secret.splitlines())):
        yield from (part, printable(part), quote(part), quote(part, safe=""), quote_plus(part))
        # Without their quotes, which a longer text may not have.
        yield from (repr(part)[1:-1], json.dumps(part)[1:-1])
        yield json.dumps(part, ensure_ascii=False)[1:-1]


def _hide(match: re.Match[str]) -> str:
    return f"{match['parameter'] or match['bearer'] or match['named'] or ''}{HIDDEN}"


def _hide_behind_the_last_at(match: re.Match[str]) -> str:
    before, at, _ = match[0].rpartition("@")
    return f"{before}@{HIDDEN}" if at else match[0]


def _without_password(match: re.Match[str]) -> str:
    # Up to the last @: a password may hold one itself.
    left, _, right = match[0].rpartition("@")  # without any, nothing is left
    scheme, is_url, _ = left.partition("://")
    if is_url and ":" not in scheme:
        return f"{scheme}://{HIDDEN}@{right}"
    if ":" not in left:
        return match[0]
    kept = left[: left.rfind("/", 0, left.index(":")) + 1]
    return f"{kept}{HIDDEN}@{right}"
