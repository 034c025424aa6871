import random

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def set_random_seed(seed, diff_rank_seed=False):
    if diff_rank_seed:
        seed += dist.get_rank()
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Generator(nn.Module):
    def __init__(self, z, out):
        super().__init__()
        self.z = z
        self.net = nn.Sequential(nn.Linear(z, 24), nn.LeakyReLU(0.1), nn.Linear(24, out))

    def forward(self, noise):
        return self.net(noise)


def build(cfg):
    cfg = dict(cfg)
    return DistributedDataParallel({"Generator": Generator}[cfg.pop("type")](**cfg))
