"""Static rules over the user's source: DDP bugs before they run. Imports no torch."""

from __future__ import annotations


def why(file: str, line: int) -> list[str]:
    """The conditions on the way to a line that ranks may answer differently; see `reasons.why`."""
    from ddpdoctor.lint.reasons import why as explain

    return explain(file, line)
