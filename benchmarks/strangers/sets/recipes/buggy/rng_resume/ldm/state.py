from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import nn

from . import rng


def make_net():
    return nn.Sequential(nn.Linear(7, 32), nn.SiLU(), nn.Linear(32, 6))


@dataclass
class TrainState:
    net: nn.Module
    opt: torch.optim.Optimizer
    step: int = 0
    history: list = field(default_factory=list)

    @classmethod
    def fresh(cls):
        net = make_net()
        return cls(net, torch.optim.Adam(net.parameters(), lr=3e-3))

    @classmethod
    def load(cls, path):
        self = cls.fresh()
        blob = torch.load(path, weights_only=False)
        self.net.load_state_dict(blob["net"])
        self.opt.load_state_dict(blob["opt"])
        self.step = blob["step"]
        rng.restore(blob["rng"])
        return self

    def save(self, path):
        states = rng.collect()
        if dist.get_rank() == 0:
            torch.save({"net": self.net.state_dict(), "opt": self.opt.state_dict(), "step": self.step, "rng": states}, path)
