import weakref

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from .model import build_model


class HookBase:
    def after_step(self): ...


class PreviewHook(HookBase):
    """Foreground share of a fixed picture, for the tensorboard of the main worker."""

    def __init__(self, period):
        self.period = period
        self.picture = torch.rand(1, 1, 10, 10, generator=torch.Generator().manual_seed(0))

    @torch.no_grad()
    def after_step(self):
        loop = self.loop()
        if (loop.iter + 1) % self.period or dist.get_rank() != 0:
            return
        net = loop.model.module
        share = net(self.picture).argmax(1).float().mean().item()
        print(f"iter {loop.iter + 1} foreground {share:.3f}", flush=True)


class TrainLoop:
    def __init__(self, cfg):
        self.max_iter = cfg["SOLVER"]["ITERS"]
        self.model = DistributedDataParallel(build_model(cfg["MODEL"]))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=cfg["SOLVER"]["LR"], momentum=0.9)
        self.gen = torch.Generator().manual_seed(dist.get_rank())
        self.hooks = []

    def register(self, hook):
        hook.loop = weakref.ref(self)
        self.hooks.append(hook)

    def train(self):
        for self.iter in range(self.max_iter):
            x = torch.rand(4, 1, 10, 10, generator=self.gen)
            loss = F.cross_entropy(self.model(x), (x[:, 0] > 0.5).long())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            for h in self.hooks:
                h.after_step()
