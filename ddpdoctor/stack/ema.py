"""Exponential moving average of a model's weights."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from ddpdoctor.stack.process_group import unwrap


class ExponentialMovingAverage:
    """Keeps an averaged copy of a model in `module`, ready to be evaluated.

    Build it after the model was wrapped: DDP gives every rank the weights of rank 0, and an average
    that was copied before would start, and stay, different on each rank.

    The weight of the past grows from 0.1 to `decay` over the first updates, or the random initial
    weights would dominate a short run. `decay` may be changed at any time.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.updates = 0
        self.module = copy.deepcopy(unwrap(model)).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Move the average towards the weights of `model`; call it after each optimizer step."""
        self.updates += 1
        # self.decay is read here, at each update: captured once, a later change would be shown
        # but never used.
        decay = min(self.decay, self.updates / (self.updates + 9))
        source = unwrap(model)
        for average, weight in zip(self.module.parameters(), source.parameters(), strict=True):
            average.lerp_(weight, 1 - decay)
        for copied, buffer in zip(self.module.buffers(), source.buffers(), strict=True):
            copied.copy_(buffer)

    def state_dict(self) -> dict[str, Any]:
        """Return all that an uninterrupted run would have."""
        return {
            "decay": self.decay,
            "updates": self.updates,
            "module": self.module.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.decay = state["decay"]
        self.updates = state["updates"]
        self.module.load_state_dict(state["module"])
