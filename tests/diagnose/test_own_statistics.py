"""Buffers that DDP leaves as they are, and that differ between ranks, are a suspicion alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ddpdoctor.evidence.events.attributes import Attributes
from ddpdoctor.evidence.events.overwritten import Buffers
from tests.diagnose.data_simulation import TRAIN, said, world

PASS = replace(TRAIN, line=80)


@pytest.mark.parametrize(
    ("own", "sent", "codes"),
    [(True, False, ["DDP312"]), (False, False, []), (True, True, ["DDP321"])],
    ids=["each its own", "all alike", "sent round by DDP"],
)
def test_what_ddp_leaves_as_it_is_and_differs_is_for_the_source_to_tell(
    own: bool, sent: bool, codes: list[str]
) -> None:
    found = world()
    for rank in found:
        for step in (1, 3):
            digests = {"middle": f"{step} {rank.rank * own}", "number": str(step)}
            rank.of(Buffers).append(Buffers(0, step, digests, PASS, sent))
    findings = said(found)
    assert [each.code for each in findings] == codes
    assert all(
        ("middle" in each.cause, "number" in each.cause) == (True, False) for each in findings
    )
    assert all(each.is_suspicion == (not sent) for each in findings)


@pytest.mark.parametrize(
    ("numbers", "codes"),
    [
        (lambda step, rank: step + rank / 8, ["DDP312"]),
        (lambda step, rank: step, []),
        (lambda step, rank: rank, []),  # the rank's own from the start, as its part
    ],
)
def test_numbers_that_are_plain_attributes_are_for_the_source_to_tell(
    numbers: Callable[[int, int], float], codes: list[str]
) -> None:
    found = world()
    for rank in found:
        for step in (1, 2, 4, 8):
            digests = {"scale": float.hex(float(numbers(step, rank.rank))), "rate": "0x1p-1"}
            rank.of(Attributes).append(Attributes(0, step, digests, (PASS, PASS)))
    findings = said(found)
    assert [each.code for each in findings] == codes
    assert all("scale" in each.cause and "rate" not in each.cause for each in findings)
    assert all(each.is_suspicion for each in findings)
