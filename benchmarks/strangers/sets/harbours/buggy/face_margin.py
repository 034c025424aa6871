import math
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


@dataclass
class Config:
    identities: int = 30
    emb: int = 16
    epochs: int = 4
    batch: int = 25
    margin: float = 0.2
    scale: float = 12.0


class AngularMargin(nn.Module):
    """additive angular margin; holds one prototype per identity"""

    def __init__(self, cfg):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(cfg.identities, cfg.emb))
        nn.init.xavier_uniform_(self.weight)
        self.m, self.s = cfg.margin, cfg.scale

    def forward(self, emb, label):
        cos = F.linear(F.normalize(emb), F.normalize(self.weight)).clamp(-1 + 1e-6, 1 - 1e-6)
        hot = F.one_hot(label, cos.size(1)).bool()
        target = torch.cos(torch.acos(cos) + self.m)
        return F.cross_entropy(self.s * torch.where(hot, target, cos), label)


def faces(cfg, seed=0, per_id=20):
    g = torch.Generator().manual_seed(seed)
    centre = torch.randn(cfg.identities, 32, generator=torch.Generator().manual_seed(99))
    y = torch.arange(cfg.identities).repeat(per_id)
    return TensorDataset(centre[y] + 0.6 * torch.randn(len(y), 32, generator=g), y)


class FaceTrainer:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(11)
        net = nn.Sequential(nn.Linear(32, 64), nn.PReLU(), nn.Linear(64, cfg.emb))
        self.backbone = DDP(net)
        self.criterion = AngularMargin(cfg)
        self.optimizer = torch.optim.SGD(
            [{"params": self.backbone.parameters()},
             {"params": self.criterion.parameters(), "weight_decay": 5e-4}], lr=0.1, momentum=0.9)
        data = faces(cfg)
        self.sampler = DistributedSampler(data, seed=5)
        self.loader = DataLoader(data, cfg.batch, sampler=self.sampler)

    def run_epoch(self, epoch):
        self.sampler.set_epoch(epoch)
        seen, acc = 0, 0.0
        for img, identity in self.loader:
            loss = self.criterion(self.backbone(img), identity)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            acc, seen = acc + loss.item() * len(img), seen + len(img)
        return acc / seen

    def fit(self):
        for epoch in range(self.cfg.epochs):
            self.optimizer.param_groups[0]["lr"] = 0.05 * (1 + math.cos(math.pi * epoch / self.cfg.epochs))
            loss = self.run_epoch(epoch)
            if dist.get_rank() == 0:
                print(f"[{epoch}] margin loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    FaceTrainer(Config()).fit()
    dist.destroy_process_group()
