"""Records what decides on chance and on learning rates: random states and plateau schedulers."""

from __future__ import annotations

import functools
import sys
import zlib
from typing import Any

from ddpdoctor.watch.aside import is_compiling
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import users_frame

_SEEDS = 8


@harmless
def state(wrapper: Any) -> str:
    """Digest of the generator that the model's dropout will draw from; "" where it draws nothing.

    The state is read, not advanced.
    """
    import torch
    from torch.nn.modules.dropout import _DropoutNd

    module = wrapper.module
    if not any(isinstance(m, _DropoutNd) and m.training and m.p > 0 for m in module.modules()):
        return ""
    device = next(module.parameters()).device
    if device.type == "cpu":
        return f"{zlib.crc32(torch.get_rng_state().numpy().tobytes()):x}"
    if device.type == "cuda":
        return f"{zlib.crc32(torch.cuda.get_rng_state(device).numpy().tobytes()):x}"
    return ""


def listen_to_seeds(log: Log) -> None:
    """Wrap `torch.manual_seed`: the first seeds, and the lines that set them."""
    import torch

    original: Any = torch.manual_seed
    calls = 0

    @harmless
    def note(seed: Any) -> None:
        nonlocal calls
        calls += 1
        if calls <= _SEEDS and (place := users_frame()) is not None:
            way = log.way(sys._getframe(1))
            log.write("seed", value=int(seed), place=place, way=way, wrappers=len(log.wrappers))

    @functools.wraps(original)
    def manual_seed(seed: Any) -> Any:
        if not is_compiling():
            note(seed)
        return original(seed)

    torch.manual_seed = manual_seed


def listen_to_plateaus(log: Log) -> None:
    """Wrap `ReduceLROnPlateau.step`: the metric of calls 1, 2, 4, 8, ... is written down."""
    from torch.optim.lr_scheduler import ReduceLROnPlateau

    original: Any = ReduceLROnPlateau.step
    calls = 0

    @harmless
    def note(metric: Any) -> None:
        nonlocal calls
        calls += 1
        if calls & (calls - 1) == 0:
            log.write("plateau", number=calls, metric=float(metric), place=users_frame())

    @functools.wraps(original)
    def step(scheduler: Any, metrics: Any, *args: Any, **kwargs: Any) -> Any:
        note(metrics)
        return original(scheduler, metrics, *args, **kwargs)

    ReduceLROnPlateau.step = step  # type: ignore[method-assign, assignment]
