"""Which keys of a checkpoint did not fit, and how they differ from those that were missing."""

from __future__ import annotations

import pytest

from ddpdoctor.watch.states import _cut


@pytest.mark.parametrize(
    ("missing", "unexpected", "expected"),
    [
        (["encoder.weight", "upper.bias"], ["ncoder.weight", "pper.bias"], ("n", "e")),
        (["encoder.weight", "upper.bias", "head.bias"], ["ncoder.weight", "pper.bias"], ("n", "e")),
        (["net.0.weight", "net.1.weight"], ["0.weight", "1.weight"], None),
        (["head.weight"], ["ead.weight"], None),
        (["encoder.weight", "upper.bias"], ["ncoder.weight", "other.bias"], None),
        (["a.weight", "b.weight"], ["weight", "bias"], None),
        (["a.weight", "ba.weight"], [".weight", "weight"], None),
        (["head.fc.weight", "head.fc.bias"], ["fc.weight", "fc.bias"], None),
        (["head.weight", "head.bias"], [], None),
        (["a.weight", "a.bias"], ["old.weight", "old.bias"], None),
    ],
)
def test_keys_that_are_the_ends_of_missing_ones_have_lost_their_beginnings(
    missing: list[str], unexpected: list[str], expected: tuple[str, str] | None
) -> None:
    found = _cut(missing, unexpected)
    assert (tuple(key[0] for key in found) or None) == expected
