"""Every pair of ranks meets once, and no rank twice in a round."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from ddpdoctor.probe.links import pairings


@given(st.integers(2, 60))
def test_each_pair_meets_exactly_once_and_each_rank_once_a_round(size: int) -> None:
    rounds = pairings(size)
    met = sorted(pair for matches in rounds for pair in matches)
    assert met == sorted(combinations(range(size), 2))
    for matches in rounds:
        ranks = [rank for pair in matches for rank in pair]
        assert len(ranks) == len(set(ranks))
