import copy

import torch
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from .nets import Online


class Learner:
    def __init__(self, tau=0.95):
        self.online = DistributedDataParallel(Online())
        self.target = copy.deepcopy(self.online.module.encoder).requires_grad_(False)
        self.opt = torch.optim.Adam(self.online.parameters(), lr=3e-3)
        self.tau = tau

    def step(self, x):
        with torch.no_grad():
            goal = F.normalize(self.target(x * 0.9), dim=1)
        loss = (F.normalize(self.online(x), dim=1) - goal).pow(2).sum(1).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self._move_target()
        return loss.item()

    @torch.no_grad()
    def _move_target(self):
        for t, o in zip(self.target.parameters(), self.online.module.encoder.parameters()):
            t.mul_(self.tau).add_(o, alpha=1 - self.tau)
