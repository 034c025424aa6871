"""SimCLR loss: features of all ranks are gathered with plain all_gather."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def everyone(x):
    parts = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x)  # <-- DDP316
    return torch.cat(parts)


class NTXent(nn.Module):
    def __init__(self, t):
        super().__init__()
        self.t = t

    def forward(self, a, b):
        a, b = everyone(a), everyone(b)
        z = F.normalize(torch.cat([a, b]), dim=1)
        sim = z @ z.t() / self.t
        n = len(a)
        sim.fill_diagonal_(float("-inf"))
        target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
        return F.cross_entropy(sim, target)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8)))
    opt = torch.optim.Adam(model.parameters())
    criterion = NTXent(0.2)
    g = torch.Generator().manual_seed(10 + dist.get_rank())
    for _ in range(20):
        x = torch.randn(12, 16, generator=g)
        views = torch.cat([x + 0.1 * torch.randn(x.shape, generator=g), x])
        a, b = model(views).chunk(2)
        loss = criterion(a, b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
