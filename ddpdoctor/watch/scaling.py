"""Knows whether gradients still carry the factor of a GradScaler."""

from __future__ import annotations

import functools
import weakref
from typing import Any


class Scaling:
    """Whether a loss has been scaled since gradients were last unscaled, or stepped on."""

    def __init__(self) -> None:
        self.is_on = False
        self._scaler: weakref.ref[Any] | None = None

    def factor(self) -> float:
        """By what a loss is larger now than it was; to ask waits for a GPU."""
        scaler = self._scaler() if self.is_on and self._scaler else None
        return float(scaler.get_scale()) if scaler is not None else 1.0

    def listen(self) -> None:
        """Wrap the methods of GradScaler."""
        from torch.amp.grad_scaler import GradScaler

        scaler_type: Any = GradScaler
        self._after(scaler_type, "scale", is_on=True)
        self._after(scaler_type, "unscale_", is_on=False)
        self._after(scaler_type, "step", is_on=False)

    def _after(self, scaler_type: Any, name: str, *, is_on: bool) -> None:
        original = getattr(scaler_type, name)

        @functools.wraps(original)
        def call(scaler: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(scaler, *args, **kwargs)
            self.is_on = is_on and bool(scaler._enabled)
            self._scaler = weakref.ref(scaler)
            return result

        setattr(scaler_type, name, call)
