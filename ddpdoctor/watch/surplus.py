"""Records where a script gathers, by accelerate, the samples that fill up a last batch.

`Accelerator.gather` gives them with the others, `gather_for_metrics` takes them off again.
"""

from __future__ import annotations

import functools
import sys
from types import CodeType
from typing import Any

from ddpdoctor.watch import datasets
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import is_users, users_frame

_LINES = 64
"""So many calls are written, each with its first last batch."""


@harmless
def listen(log: Log) -> None:
    """Wrap `Accelerator.gather`, if this process has imported accelerate and did not yet."""
    library: Any = sys.modules.get("accelerate.accelerator")
    if library is None or hasattr(library.Accelerator.gather, "__wrapped__"):
        return
    kind = library.Accelerator
    original = kind.gather
    seen: dict[tuple[int, int], CodeType] = {}

    @harmless
    def note(accelerator: Any, given: Any, frame: Any) -> None:
        where = id(frame.f_code), frame.f_lasti
        state = accelerator.gradient_state
        if where in seen or len(seen) >= _LINES or not is_users(frame.f_code):
            return
        own, samples = datasets.rows(given), state.remainder
        if own is None or samples <= 0 or not state.end_of_dataloader:
            return
        gathered = own * accelerator.num_processes
        if gathered > samples:
            seen[where] = frame.f_code  # kept alive, so that no id is mistaken
            place = users_frame(frame)
            log.write("surplus", place=place, gathered=gathered, samples=samples)

    @functools.wraps(original)
    def gather(accelerator: Any, tensor: Any) -> Any:
        note(accelerator, tensor, sys._getframe(1))
        return original(accelerator, tensor)

    kind.gather = gather
