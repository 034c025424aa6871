"""A small transformer that says in which direction a noisy image should move to become a digit."""

from __future__ import annotations

from typing import Self

import torch
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator
from torch import nn

from ddpdoctor.stack.generation.data import CLASSES, SIDE

PATCH = 2
TOKENS = (SIDE // PATCH) ** 2
FEATURES = CLASSES - 1


class ModelConfig(BaseModel):
    """The size of the network."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    width: PositiveInt = 64
    """Numbers that describe a patch of 2 x 2 pixels; a multiple of 2 and of heads."""
    heads: PositiveInt = 4
    """Attention heads in each layer."""
    layers: PositiveInt = 3
    """Transformer layers."""
    align_layer: PositiveInt = 2
    """The layer whose output is aligned with the teacher's representation."""
    align_weight: float = Field(default=0.5, ge=0)
    """How much the alignment counts in the loss, beside 1 for the flow."""

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        if self.width % self.heads or self.width % 2:
            raise ValueError(f"width {self.width} is not a multiple of 2 and of heads {self.heads}")
        if self.align_layer > self.layers:
            raise ValueError(f"there is no align_layer {self.align_layer} in {self.layers} layers")
        return self


class FlowTransformer(nn.Module):
    """Predicts the velocity of an image on its way from noise (time 0) to a digit (time 1)."""

    frequencies: torch.Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.width
        self.align_layer = config.align_layer
        self.patches = nn.Conv2d(1, width, PATCH, PATCH)
        self.place = nn.Parameter(torch.randn(TOKENS, width) / width**0.5)
        self.label = nn.Embedding(CLASSES, width)
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.layers = nn.ModuleList(Layer(width, config.heads) for _ in range(config.layers))
        self.out = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, PATCH**2))
        self.projector = nn.Sequential(
            nn.Linear(width, width), nn.SiLU(), nn.Linear(width, FEATURES)
        )
        self.register_buffer(
            "frequencies", torch.exp(torch.linspace(0, 6, width // 2)), persistent=False
        )

    def forward(
        self, image: torch.Tensor, time: torch.Tensor, label: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return velocities (n x 1 x 8 x 8) and projected representations (n x 9).

        Both from one forward: a projector that were called beside the DDP wrapper would have its
        gradients averaged by nobody.
        """
        angles = time[:, None] * self.frequencies
        waves = torch.cat([angles.sin(), angles.cos()], dim=1)
        condition = (self.time(waves) + self.label(label))[:, None]
        tokens = self.patches(image).flatten(2).transpose(1, 2) + self.place
        projected = tokens.new_zeros(len(image), FEATURES)
        for number, layer in enumerate(self.layers, start=1):
            tokens = layer(tokens, condition)
            if number == self.align_layer:
                projected = self.projector(tokens.mean(dim=1))
        side = SIDE // PATCH
        pixels = self.out(tokens).view(len(image), side, side, PATCH, PATCH)
        return pixels.transpose(2, 3).reshape(len(image), 1, SIDE, SIDE), projected


class Layer(nn.Module):
    """Attention over the patches, then a feed-forward step, both steered by the condition."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width, elementwise_affine=False) for _ in range(2))
        self.steer = nn.Sequential(nn.SiLU(), nn.Linear(width, 4 * width))
        self.query_key_value = nn.Linear(width, 3 * width)
        self.gather = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, tokens: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        """Return the tokens' new vectors (n x patches x width)."""
        scale, shift, scale_2, shift_2 = self.steer(condition).chunk(4, dim=-1)
        normed = self.norms[0](tokens) * (1 + scale) + shift
        n, patches, width = normed.shape
        split = self.query_key_value(normed).view(n, patches, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value)
        tokens = tokens + self.gather(mixed.transpose(1, 2).reshape(n, patches, width))
        normed = self.norms[1](tokens) * (1 + scale_2) + shift_2
        result: torch.Tensor = tokens + self.feed_forward(normed)
        return result


def flow_losses(model: nn.Module, batch: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Return two losses per image: of the flow, and of the alignment (1 - cosine).

    The way from noise to image is a straight line, and the network learns its direction
    (arXiv:2209.03003).
    """
    time = batch["time"][:, None, None, None]
    mixed = time * batch["image"] + (1 - time) * batch["noise"]
    velocity, projected = model(mixed, batch["time"], batch["label"])
    # In full precision, whatever the forward was calculated in.
    wrong = velocity.float() - (batch["image"] - batch["noise"])
    cosine = nn.functional.cosine_similarity(projected.float(), batch["feature"])
    return wrong.square().flatten(1).mean(dim=1), 1 - cosine


@torch.no_grad()
def generate(
    model: nn.Module, noise: torch.Tensor, label: torch.Tensor, steps: int
) -> torch.Tensor:
    """Follow the flow from noise (n x 1 x 8 x 8) to images of `label`, by Heun's method."""
    image, width = noise, 1 / steps
    for step in range(steps):
        now = torch.full((len(noise),), step * width, device=noise.device)
        first, _ = model(image, now, label)
        second, _ = model(image + width * first, now + width, label)
        image = image + width * (first + second) / 2
    return image.clamp(-1, 1)
