"""Whose a line of source is, judged by its path alone: the record may come from another machine."""

from __future__ import annotations

import re

_LIBRARY = re.compile(
    r"^<|(^|/)(site-packages|dist-packages)/|/lib/python\d[\d.]*/|/ddpdoctor/watch/|^[\w.]+ at 0x"
)


def is_users(file: str) -> bool:
    """Whether a file is the user's own: neither an installed package nor the standard library."""
    return bool(file) and _LIBRARY.search(file) is None
