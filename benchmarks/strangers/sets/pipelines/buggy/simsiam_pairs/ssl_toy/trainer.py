import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from .bank import collapse_level, collect_bank
from .model import SimSiam


def augment(x, g):
    return x + 0.1 * torch.randn(x.shape, generator=g)


class SSLTrainer:
    def __init__(self, cfg):
        self.cfg, self.rank = cfg, dist.get_rank()
        m = cfg.model
        self.model = DistributedDataParallel(SimSiam(m.dim_in, m.dim, m.pred_dim), **cfg.ddp)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=cfg.lr, momentum=0.9)
        self.gen = torch.Generator().manual_seed(self.rank)

    def training_step(self, x):
        p1, z1 = self.model(augment(x, self.gen))
        p2, z2 = self.model(augment(x, self.gen))
        return -(F.cosine_similarity(p1, z2).mean() + F.cosine_similarity(p2, z1).mean()) / 2

    def monitor(self):
        x = torch.randn(self.cfg.batch, self.cfg.model.dim_in, generator=self.gen)
        with torch.no_grad():
            bank = collect_bank(self.model.module.encoder(x))
        return None if bank is None else collapse_level(bank)

    def fit(self):
        for step in range(self.cfg.steps):
            x = torch.randn(self.cfg.batch, self.cfg.model.dim_in, generator=self.gen)
            loss = self.training_step(x)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        level = self.monitor()
        if self.rank == 0:
            print(f"step {step} loss {loss.item():.4f} std of features {level:.4f}", flush=True)
        dist.barrier()
