from collections import OrderedDict

import torch
import torch.distributed as dist
from torch import nn

import heads  # noqa: F401
from registry import HEADS


def parse_losses(raw, group=None):
    log_vars = OrderedDict((name, value) for name, value in raw.items())
    total = sum(value for name, value in log_vars.items() if name.startswith("loss"))
    log_vars["loss"] = total
    for name, value in log_vars.items():
        value = value.detach().clone() / dist.get_world_size()
        dist.all_reduce(value, group=group)
        log_vars[name] = value.item()
    return total, log_vars


class Detector(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        w = cfg["width"]
        self.stem = nn.Sequential(
            nn.Conv2d(1, w, 3, 2, 1), nn.ReLU(), nn.Conv2d(w, w, 3, 2, 1), nn.ReLU(), nn.Conv2d(w, w, 3, 1, 1), nn.ReLU())
        self.heads = nn.ModuleList(HEADS.build(h, width=w) for h in cfg["heads"])

    def forward(self, image, target):
        feat = self.stem(image)
        losses = OrderedDict()
        for head in self.heads:
            losses.update(head.loss(head(feat), target))
        return losses
