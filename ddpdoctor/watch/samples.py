"""Records which samples a model is given in its first passes, by a digest of some of each.

Who deals samples out, and how, does not matter here: what the model is given is what the ranks have
read. What augmentation changes looks new each time, and says nothing.
"""

from __future__ import annotations

import zlib
from collections import Counter
from typing import Any

from ddpdoctor.watch import datasets
from ddpdoctor.watch.digests import is_capturing
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import users_frame

_PASSES = 48
"""Passes of each wrapper that are looked at."""
_SAMPLES, _ELEMENTS = 16, 256
"""Of so many samples of a batch, so many elements."""


class Samples:
    """What the wrappers were given so far."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._passes: Counter[int] = Counter()

    @harmless
    def note(self, wrapper: int, inputs: Any, kwargs: Any) -> bool:
        """A pass of this wrapper begins. Whether the next one is looked at too."""
        batch = datasets.first((inputs, kwargs))
        if batch is None or batch.dim() < 2 or is_capturing([batch]):
            return False  # of single numbers many are alike
        self._passes[wrapper] += 1
        few = batch.detach()[:_SAMPLES]
        flat = few.reshape(len(few), -1)
        step = max(1, flat.shape[1] // _ELEMENTS)
        rows = flat[:, ::step].contiguous().cpu().numpy()
        digests = [f"{zlib.crc32(row.tobytes()):x}" for row in rows]
        self._log.write(
            "given", wrapper=wrapper, step=self._log.steps, rows=digests, place=users_frame()
        )
        return self._passes[wrapper] < _PASSES
