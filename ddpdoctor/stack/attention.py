"""Attention along the edges of a graph, without a graph framework.

The softmax over the edges that meet in a node is an `index_add_` of exponentials, and so is the sum
of the messages.
"""

from __future__ import annotations

import torch
from torch import nn


class EdgeAttention(nn.Module):
    """Multi-head attention of every node over its incoming edges, then a feed-forward step."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.edge_key_value = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 2 * width),
            nn.SiLU(),
            nn.Dropout(dropout),
            nn.Linear(2 * width, width),
        )

    def forward(
        self,
        nodes: torch.Tensor,
        edges: torch.Tensor,
        weight: torch.Tensor,
        source: torch.Tensor,
        target: torch.Tensor,
        memory: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the nodes' new vectors (nodes x width).

        `edges` (edges x width) describe the way from `source` to `target`, and an edge of `weight`
        0 has no say. With `memory` (any number x width), sources are rows of that instead.
        """
        query = self._by_head(self.query(self.norm(nodes))[target])
        senders = self.norm(nodes if memory is None else memory)
        pair = self.key_value(senders)[source] + self.edge_key_value(edges)
        key, value = self._by_head(nn.functional.silu(pair)).chunk(2, dim=-1)
        score = (query * key).sum(-1) / key.shape[-1] ** 0.5
        share = edge_softmax(score.to(weight.dtype), weight, target, len(nodes))
        message = (share.unsqueeze(-1) * value).flatten(1).to(weight.dtype)
        gathered = message.new_zeros(len(nodes), message.shape[1]).index_add_(0, target, message)
        nodes = nodes + self.out(gathered)
        result: torch.Tensor = nodes + self.feed_forward(nodes)
        return result

    def _by_head(self, vectors: torch.Tensor) -> torch.Tensor:
        return vectors.view(len(vectors), self.heads, vectors.shape[1] // self.heads)


def edge_softmax(
    score: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, n_nodes: int
) -> torch.Tensor:
    """Softmax of `score` (edges x heads) over the edges that share a target, weighted by `weight`.

    An edge at the cutoff has weight 0 and no say, so the result is smooth where neighbours enter.
    A node without neighbours has no edges, and nothing is divided by zero.
    """
    # The largest score is subtracted so that no exponential overflows; it cancels, so it needs no
    # gradient.
    largest = score.new_full((n_nodes, score.shape[1]), -torch.inf).scatter_reduce_(
        0, target[:, None].expand_as(score), score.detach(), "amax"
    )
    exponential = weight[:, None] * torch.exp(score - largest[target])
    total = exponential.new_zeros(n_nodes, score.shape[1]).index_add_(0, target, exponential)
    return exponential / (total[target] + 1e-12)
