"""Backbone stays put during the first epoch (zero learning rate), then joins."""
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@dataclass
class Cfg:
    epochs: int = 4
    warm: int = 1
    lr: float = 0.05
    batch: int = 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU())
        self.head = nn.Linear(64, 6)

    def forward(self, x):
        return self.head(self.backbone(x))


def build_data():
    g = torch.Generator().manual_seed(12)
    y = torch.randint(0, 6, (480,), generator=g)
    return TensorDataset(torch.randn(6, 16, generator=g)[y] + torch.randn(480, 16, generator=g), y)


def main(cfg=Cfg()):
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = DDP(Net())
    groups = [{"params": model.module.backbone.parameters(), "lr": 0.0},
              {"params": model.module.head.parameters(), "lr": cfg.lr}]
    opt = torch.optim.SGD(groups, momentum=0.0)
    data = build_data()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, cfg.batch, sampler=sampler)
    for epoch in range(cfg.epochs):
        if epoch == cfg.warm:
            opt.param_groups[0]["lr"] = cfg.lr * 0.1
        sampler.set_epoch(epoch)
        for x, y in loader:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} lrs {[g['lr'] for g in opt.param_groups]}")
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "staged.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
