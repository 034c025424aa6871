"""The law of the generators: equal for one rank and seed, different for any two."""

from __future__ import annotations

import random

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ddpdoctor.stack.rng import generator_states, restore_generators, seed_generators

seeds = st.integers(0, 2**31)
ranks = st.integers(0, 10_000)


def drawn() -> tuple[float, float, float]:
    return random.random(), float(np.random.rand()), torch.rand((), dtype=torch.float64).item()


@settings(max_examples=50)
@given(seeds, ranks)
def test_a_rank_draws_the_same_again(seed: int, rank: int) -> None:
    seed_generators(seed, rank)
    first = drawn()
    seed_generators(seed, rank)
    states = generator_states()
    assert drawn() == first
    restore_generators(states)
    assert drawn() == first


@settings(max_examples=50)
@given(seeds, ranks, st.integers(1, 10_000))
def test_no_two_ranks_share_their_noise(seed: int, rank: int, further: int) -> None:
    """Neither do rank 1 of one seed and rank 0 of the next, as seed + rank would have it."""
    seed_generators(seed, rank)
    mine = drawn()
    for other in ((seed, rank + further), (seed + further, rank), (seed + 1, rank - 1)):
        if min(other) >= 0:
            seed_generators(*other)
            assert not set(mine) & set(drawn())
