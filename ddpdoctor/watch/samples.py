"""Records which samples a model is given in its first passes, by a digest of some of each.

Who deals samples out, and how, does not matter here: what the model is given is what the ranks have
read. What augmentation changes looks new each time, and says nothing.
"""

from __future__ import annotations

import itertools
import sys
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
_WHOLE, _TENSORS, _LARGE = 2, 16, 1 << 21
"""Passes of each wrapper of which all that is given is looked at, so many tensors of it, and so
many numbers of the first samples of each."""


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
        is_first = self._passes[wrapper] <= _WHOLE
        self._log.write(
            "given",
            wrapper=wrapper,
            step=self._log.steps,
            rows=digests,
            place=users_frame(),
            way=self._log.way(sys._getframe(1)),
            whole=(_whole(inputs, kwargs) or "") if is_first else "",
        )
        return self._passes[wrapper] < _PASSES


@harmless
def _whole(inputs: Any, kwargs: Any) -> str:
    """A digest of some elements of each tensor; "" if there are many, or one is large."""
    given = list(itertools.islice(datasets.tensors((inputs, kwargs)), _TENSORS + 1))
    if len(given) > _TENSORS or is_capturing(given):
        return ""
    found = 0
    for tensor in given:
        rows = tensor.detach()[:_SAMPLES] if tensor.dim() else tensor.detach()
        if rows.numel() > _LARGE:
            return ""
        flat = rows.reshape(-1)[:: max(1, rows.numel() // _ELEMENTS)]
        found = zlib.crc32(f"{tuple(tensor.shape)} {flat.tolist()}".encode(), found)
    return f"{found:x}"
