"""Attention along edges."""

from __future__ import annotations

import torch

from ddpdoctor.stack.attention import EdgeAttention, edge_softmax


def test_shares_of_attention_add_up_to_one_and_do_not_overflow() -> None:
    target = torch.tensor([0, 0, 0, 2])
    score = torch.tensor([[1000.0], [1001.0], [-1000.0], [5.0]])
    share = edge_softmax(score, torch.ones(4), target, n_nodes=3)
    expected = torch.tensor([1 / (1 + torch.e), torch.e / (1 + torch.e), 0, 1]).unsqueeze(1)
    torch.testing.assert_close(share, expected)


def test_an_edge_at_the_cutoff_has_no_say() -> None:
    score, target = torch.tensor([[0.3], [9.0]]), torch.tensor([0, 0])
    share = edge_softmax(score, torch.tensor([0.5, 0.0]), target, n_nodes=1)
    torch.testing.assert_close(share, torch.tensor([[1.0], [0.0]]))


def test_nodes_that_ask_a_memory_hear_from_its_rows_alone() -> None:
    torch.manual_seed(0)
    layer = EdgeAttention(width=4, heads=2, dropout=0.0)
    nodes, memory, edges = torch.randn(2, 4), torch.randn(3, 4), torch.randn(2, 4)
    source, target = torch.tensor([2, 2]), torch.tensor([0, 1])

    def answer(memory: torch.Tensor) -> torch.Tensor:
        return layer(nodes, edges, torch.ones(2), source, target, memory)

    before = answer(memory)
    assert before.shape == nodes.shape
    unheard, heard = memory.clone(), memory.clone()
    unheard[:2] += 1
    heard[2] += torch.arange(4)
    assert torch.equal(answer(unheard), before)
    assert not torch.allclose(answer(heard), before)
