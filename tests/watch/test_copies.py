"""Copies of a model from before its wrap: how much is read to find them, and what stays of it."""

from __future__ import annotations

import torch
from torch import nn

from ddpdoctor.watch.copies import Copies
from ddpdoctor.watch.digests import ELEMENTS, Budget, digests, head


class Wrapper(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module


def wrapped(copies: Copies, module: nn.Module) -> Wrapper:
    copies.wrapping(module)
    wrapper = Wrapper(module)
    copies.wrapped(wrapper)
    return wrapper


def large(*, tail: float) -> nn.Linear:
    """A layer whose first rows, which are read, are zeros."""
    layer = nn.Linear(64, 4096, bias=False)
    with torch.no_grad():
        layer.weight[: ELEMENTS // 64] = 0.0
        layer.weight[ELEMENTS // 64 :] = tail
    return layer


def test_a_digest_reads_the_head_of_a_tensor() -> None:
    tensor = torch.randn(4096, 64)
    assert head(tensor).numel() == ELEMENTS
    assert digests({"": tensor}) == digests({"": head(tensor)})
    assert digests({"": torch.tensor(2.0)}) == digests({"": head(torch.tensor(2.0))})


def test_no_more_is_looked_at_than_a_digest_reads() -> None:
    copies, layer = Copies(Budget()), large(tail=1.0)
    slow = layer.weight.detach().clone()
    wrapper = wrapped(copies, layer)
    assert copies._kept == [], "what was read are zeros, as many tensors are"
    with torch.no_grad():
        for each in (slow, layer.weight):
            each[0] = torch.arange(64)
    again = wrapped(copies, layer)
    assert len(copies._kept) == 1
    del wrapper, again


def test_nothing_is_kept_of_wrappers_that_are_gone() -> None:
    copies = Copies(Budget())
    for _ in range(4):
        layer = nn.Linear(8, 8)
        slow = layer.weight.detach().clone()
        wrapper = wrapped(copies, layer)
        assert [each.wrapper() for each in copies._kept] == [wrapper]
        del wrapper, slow
