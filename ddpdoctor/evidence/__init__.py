"""The schema of what ranks wrote: the only thing that `watch` and `diagnose` share.

A rank appends one JSON object a line to its log (`LOG_NAME`); `RankReader` turns the lines into a
`RankEvidence`. Each kind of event has one place, in `events/`. Standard library alone: this is
imported into the user's training process.
"""

from __future__ import annotations

from ddpdoctor.evidence.place import Place
from ddpdoctor.evidence.spans import named, spans

TYPE_CHECKING = False  # as typing has it, which a watched process need not import for this
if TYPE_CHECKING:
    from ddpdoctor.evidence.whole import *  # noqa: F403 - what __getattr__ gives

__all__ = ["Place", "named", "spans"]


def __getattr__(name: str) -> object:
    """All the rest, when it is first asked for: who tells a finding needs only where it is."""
    if name.startswith("__"):
        raise AttributeError(name)
    from importlib import import_module

    whole = import_module("ddpdoctor.evidence.whole")
    globals().update({each: getattr(whole, each) for each in whole.__all__})
    if name not in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]
