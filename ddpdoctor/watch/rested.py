"""Records with which running statistics a DDP was evaluated that sends no buffers.

Each rank's batch norms then go by its own data. They are looked at as the wrapper goes back to
training, the 1st, 2nd, 4th, 8th, ... time: what was to be averaged for the evaluation has been.
"""

from __future__ import annotations

import functools
import time
from typing import Any

from ddpdoctor.watch.aside import skip
from ddpdoctor.watch.digests import Budget, digests, is_capturing, size
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.identity import ByIdentity
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.passes import Passes
from ddpdoctor.watch.places import users_frame


@harmless
def listen(log: Log, wrapped: ByIdentity[Passes], budget: Budget) -> None:
    """Wrap `DistributedDataParallel.train`, which `eval` calls, too."""
    import torch
    from torch.nn import parallel

    wrapper_type: Any = parallel.DistributedDataParallel
    original, norms = wrapper_type.train, torch.nn.modules.batchnorm._NormBase
    since: dict[int, float] = {}
    often: dict[int, int] = {}

    @harmless
    def note(wrapper: Any, mode: bool) -> None:
        entry = wrapped.entries.get(id(wrapper))
        if entry is None or wrapper.broadcast_buffers or wrapper.training == mode:
            return
        number = entry[1].number
        if not mode:
            since[number] = time.monotonic()
            return
        often[number] = often.get(number, 0) + 1
        if number not in since or often[number] & (often[number] - 1):
            return
        held = {
            f"{path}.{name}".lstrip("."): buffer
            for path, module in wrapper.module.named_modules()
            if isinstance(module, norms)
            for name, buffer in module._buffers.items()
            if buffer is not None and buffer.is_floating_point()
        }
        if held and not is_capturing(held.values()) and budget.take(size(held)):
            log.write(
                "rested",
                wrapper=number,
                since=since[number],
                digests=digests(held),
                place=users_frame(),
            )

    @functools.wraps(original)
    def train(wrapper: Any, mode: bool = True) -> Any:
        note(wrapper, mode)
        return original(wrapper, mode)

    skip(train)
    wrapper_type.train = train
