"""Records what decides on chance and on learning rates: random states and plateau schedulers."""

from __future__ import annotations

import functools
import sys
import zlib
from collections import deque
from collections.abc import Callable
from typing import Any

from ddpdoctor.watch.aside import is_compiling
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import is_users, users_frame

_SEEDS = 8
_RESTORES = 16
"""So many random states are written; the last one says that more may have come."""
_BEFORE_SEEDS = 8
"""So many states are kept that a seed has put an end to."""


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
    """Wrap `torch.manual_seed` and `torch.set_rng_state`: the first calls, and their lines."""
    import torch

    original: Any = torch.manual_seed
    ended: deque[str] = deque(maxlen=_BEFORE_SEEDS)
    restored = _listen_to_restores(log, ended)
    calls = 0

    @harmless
    def note(seed: Any) -> None:
        nonlocal calls
        calls += 1
        if calls <= _SEEDS and (place := users_frame()) is not None:
            way = log.way(sys._getframe(1))
            log.write("seed", value=int(seed), place=place, way=way, wrappers=len(log.wrappers))

    @harmless
    def ends() -> None:
        ended.append(_digest())

    @functools.wraps(original)
    def manual_seed(seed: Any) -> Any:
        if is_compiling():
            return original(seed)
        note(seed)
        before = torch.initial_seed()
        if calls <= _SEEDS or restored:  # 16 restores later nobody asks for it any more
            ends()
        result = original(seed)
        if restored:
            restored[0](before, sys._getframe(1))
        return result

    torch.manual_seed = manual_seed


def _digest() -> str:
    """Of the state of torch's own generator."""
    import torch

    return f"{zlib.crc32(torch.get_rng_state().numpy().tobytes()):x}"


def _listen_to_restores(log: Log, ended: deque[str]) -> list[Callable[[int, Any], None]]:
    """Once a random state was restored, what is listed is to be called after each seed, too.

    Of the first of those who seed for a while and give the state back, `ended` has what that was.
    """
    import torch

    original: Any = torch.set_rng_state
    listed: list[Callable[[int, Any], None]] = []
    written = 0

    @harmless
    def note(before: int, frame: Any) -> None:
        nonlocal written
        written += 1
        if written > _RESTORES:
            return
        state = _digest()
        log.write(
            "random-state",
            before=str(before),
            now=state if written < _RESTORES else "",
            given_back=state in ended,
            place=users_frame(frame),
            way=log.way(frame),
        )

    @functools.wraps(original)
    def set_rng_state(new_state: Any) -> None:
        frame = sys._getframe(1)
        # After one of the user's, what `fork_rng` puts back counts, too.
        counts = is_users(frame.f_code) or (bool(listed) and frame.f_code.co_name == "fork_rng")
        before = torch.initial_seed() if counts and not is_compiling() else None
        original(new_state)
        if before is not None:
            note(before, frame)
            listed[:] = [note] if written < _RESTORES else []

    torch.set_rng_state = set_rng_state
    torch.random.set_rng_state = set_rng_state
    return listed


def listen_to_plateaus(log: Log) -> None:
    """Wrap `ReduceLROnPlateau.step`: the metric of calls 1, 2, 4, 8, ... is written down."""
    from torch.optim.lr_scheduler import ReduceLROnPlateau

    original: Any = ReduceLROnPlateau.step
    calls, before = 0, (0, 0, 0)

    @harmless
    def note(scheduler: Any, metric: Any) -> None:
        nonlocal calls, before
        calls += 1
        again, before = before, (id(scheduler), id(metric), log.steps)
        if calls & (calls - 1) == 0:
            log.write(
                "plateau",
                number=calls,
                metric=float(metric),
                place=users_frame(),
                again=again == before,
            )

    @functools.wraps(original)
    def step(scheduler: Any, metrics: Any, *args: Any, **kwargs: Any) -> Any:
        note(scheduler, metrics)
        return original(scheduler, metrics, *args, **kwargs)

    ReduceLROnPlateau.step = step  # type: ignore[method-assign, assignment]
