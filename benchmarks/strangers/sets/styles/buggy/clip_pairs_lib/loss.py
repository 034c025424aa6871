"""Contrastive loss over the features of all processes.

Each process scores its own rows against everybody's columns, so the logit matrix stays
(batch x batch * world) instead of growing quadratically."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


def gather_features(*features):
    out = []
    for feat in features:
        parts = [torch.zeros_like(feat) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, feat.contiguous())
        out.append(torch.cat(parts))
    return out


class ClipLoss(nn.Module):
    def __init__(self, rank, world):
        super().__init__()
        self.rank, self.world = rank, world
        self._labels = {}

    def labels(self, n):
        if n not in self._labels:
            self._labels[n] = torch.arange(n) + n * self.rank
        return self._labels[n]

    def logits(self, image, text, scale):
        if self.world == 1:
            return scale * image @ text.t(), scale * text @ image.t()
        all_image, all_text = gather_features(image, text)
        return scale * image @ all_text.t(), scale * text @ all_image.t()

    def forward(self, image, text, scale):
        per_image, per_text = self.logits(image, text, scale)
        labels = self.labels(len(image))
        return 0.5 * (F.cross_entropy(per_image, labels) + F.cross_entropy(per_text, labels))


def create_loss(rank, world):
    return ClipLoss(rank, world)
