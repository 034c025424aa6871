"""A small set-prediction detector: each cell of a coarse grid may claim one object.

Convolutions see what is near, attention between the cells settles which of them claims an object,
so that each is found once and nothing has to be suppressed afterwards.
"""

from __future__ import annotations

from typing import Self

import torch
from pydantic import BaseModel, ConfigDict, PositiveInt, model_validator
from torch import nn

from ddpdoctor.stack.detection.boxes import corners
from ddpdoctor.stack.detection.scene import SIDE, Batch

STRIDE = 4
CELLS = SIDE // STRIDE
"""Cells each way: CELLS x CELLS objects are the most that can be found."""


class ModelConfig(BaseModel):
    """The size of the network."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    hidden_dim: PositiveInt = 64
    """Length of the vector of each cell."""
    heads: PositiveInt = 4
    """Attention heads in each layer."""
    layers: PositiveInt = 2
    """Layers of attention between the cells."""

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.hidden_dim % self.heads:
            raise ValueError(
                f"hidden_dim {self.hidden_dim} is not a multiple of heads {self.heads}"
            )
        return self


class Detector(nn.Module):
    """Gives each cell a score for each class, and a box."""

    centres: torch.Tensor

    def __init__(self, config: ModelConfig, n_classes: int) -> None:
        super().__init__()
        width = config.hidden_dim
        self.backbone = nn.Sequential(
            nn.Conv2d(1, width // 2, 5, stride=2, padding=2),
            nn.SiLU(),
            nn.Conv2d(width // 2, width, 3, padding=1),
            nn.SiLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1),
            nn.SiLU(),
            nn.Conv2d(width, width, 3, padding=1),
        )
        self.position = nn.Parameter(torch.randn(CELLS * CELLS, width) * 0.02)
        self.attention = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, config.heads, 2 * width, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in range(config.layers)
        )
        self.norm = nn.LayerNorm(width)
        self.classes = nn.Linear(width, n_classes)
        self.box = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 4))
        # Nearly every cell is empty: beginning with that, the first steps are not spent on it.
        nn.init.constant_(self.classes.bias, -4.0)
        at = (torch.arange(CELLS) + 0.5) / CELLS
        self.register_buffer("centres", torch.cartesian_prod(at, at).flip(-1))

    def forward(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scores (images x cells x classes, logits) and boxes (images x cells x 4, corners).

        A box lies within two cells of its own, and is as large as the image at most.
        """
        cells = self.backbone(batch.images).flatten(2).transpose(1, 2) + self.position
        for layer in self.attention:
            cells = layer(cells)
        cells = self.norm(cells)
        # Out of autocast: coordinates want full precision.
        raw = self.box(cells).to(self.centres.dtype)
        centre = self.centres + torch.tanh(raw[..., :2]) * 2 / CELLS
        size = torch.sigmoid(raw[..., 2:] - 1.0)
        return self.classes(cells), corners(torch.cat([centre, size], dim=-1))


@torch.no_grad()
def detect(model: nn.Module, batch: Batch, most: int = 20) -> list[torch.Tensor]:
    """Return for each image its `most` surest detections, surest first.

    Rows are score, class, x1, y1, x2, y2.
    """
    logits, boxes = model(batch)
    scores = logits.to(boxes.dtype).sigmoid().flatten(1)
    n_classes = logits.shape[-1]
    best, chosen = scores.topk(min(most, scores.shape[1]), dim=1)
    cell, label = chosen // n_classes, chosen % n_classes
    found = torch.gather(boxes, 1, cell[..., None].expand(-1, -1, 4))
    return list(torch.cat([best[..., None], label[..., None].to(best.dtype), found], dim=-1))
