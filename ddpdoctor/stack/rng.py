"""The state of every random generator that a training may draw from, to save and to restore."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch


def seed_generators(seed: int, rank: int) -> None:
    """Seed python, numpy and torch for this rank: for noise that should differ, such as dropout.

    What must be equal on all ranks (initial weights, the split, the order of the samples) has
    generators of its own, seeded with `seed` alone.
    """
    mixed = int(np.random.SeedSequence([seed, rank]).generate_state(1)[0])
    random.seed(mixed)
    np.random.seed(mixed)
    torch.manual_seed(mixed)  # CUDA included


def generator_states() -> dict[str, Any]:
    """Return the states in plain types, which `torch.load(weights_only=True)` reads."""
    numpy_state: Any = np.random.get_state()
    return {
        "python": random.getstate(),
        "numpy": [numpy_state[0], numpy_state[1].tolist(), *numpy_state[2:]],
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
    }


def restore_generators(states: dict[str, Any]) -> None:
    """Put back what `generator_states` returned."""
    random.setstate(states["python"])
    np.random.set_state(tuple(states["numpy"]))
    torch.set_rng_state(states["torch"])
    if states["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])
