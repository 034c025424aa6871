"""Records which line goes backward, where several models reduce their gradients over one group.

Gradients of two models are told apart by nothing that is sent along: where the passes of two ranks
part, those of one model meet those of another, and gloo may abort a rank on the spot. So each is
written before it begins, the first ones and those that do not come soon after one that was.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.identity import ByIdentity
from ddpdoctor.watch.log import Log

_FIRST = 64
_APART = 0.05
"""Seconds since the last line after which a pass is written."""


class Backwards:
    """The backward passes of a process with several wrappers."""

    def __init__(self, log: Log) -> None:
        self.is_on = False
        """There are several wrappers, all of one group."""
        self._log = log
        self._seen = 0
        self._written = 0.0

    @harmless
    def built(self, wrappers: ByIdentity[Any]) -> None:
        """One more wrapper has been built."""
        groups = [wrapper.process_group for wrapper, _ in wrappers.items()]
        self.is_on = len(groups) > 1 and all(group is groups[0] for group in groups)

    @harmless
    def begins(self, wrappers: ByIdentity[Any]) -> None:
        """A pass begins: how many collectives the group has seen until then, and who calls."""
        self._seen += 1
        now = time.monotonic()
        if self._seen > _FIRST and now - self._written < _APART:
            return
        self._written = now
        wrapper, _ = next(iter(wrappers.items()))
        seq = wrapper.process_group._get_sequence_number_for_group()
        self._log.write("backward", seq=seq, way=self._log.way(sys._getframe(1)))
