"""Joint model on hospital records: in-hospital mortality for all stays, length of stay where it was coded."""
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@dataclass
class Opt:
    stays: int = 480
    feats: int = 20
    batch: int = 8
    epochs: int = 3
    lr: float = 1e-3
    seed: int = 33


class JointNet(nn.Module):
    def __init__(self, n_in, width=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.mort = nn.Linear(width, 1)
        self.los = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, coded):
        h = self.trunk(x)
        los = self.los(h[coded]).squeeze(-1) if coded.any() else None
        return self.mort(h).squeeze(-1), los


def records(o):
    g = torch.Generator().manual_seed(o.seed)
    x = torch.randn(o.stays, o.feats, generator=g)
    died = (x[:, :4].sum(1) > 1.0).float()
    days = 3 + 2 * x[:, 4] + 0.2 * torch.randn(o.stays, generator=g)
    coded = torch.rand(o.stays, generator=g) < 0.22
    return TensorDataset(x, died, days, coded)


def joint_loss(mort, los, died, days, coded):
    loss = F.binary_cross_entropy_with_logits(mort, died)
    if los is not None:
        loss = loss + 0.1 * F.smooth_l1_loss(los, days[coded])
    return loss


def main():
    o = Opt()
    dist.init_process_group("gloo")
    torch.manual_seed(o.seed)
    data = records(o)
    sampler = DistributedSampler(data, seed=o.seed)
    loader = DataLoader(data, batch_size=o.batch, sampler=sampler)
    net = DDP(JointNet(o.feats), find_unused_parameters=True)
    opt = torch.optim.AdamW(net.parameters(), lr=o.lr)
    for epoch in range(o.epochs):
        sampler.set_epoch(epoch)
        run = torch.zeros(2)
        for x, died, days, coded in loader:
            mort, los = net(x, coded)
            loss = joint_loss(mort, los, died, days, coded)
            opt.zero_grad()
            loss.backward()
            opt.step()
            run += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(run)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {(run[0] / run[1]).item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
