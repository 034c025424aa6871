import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

RANK = int(os.environ["RANK"])
WORLD = int(os.environ["WORLD_SIZE"])


class GatherLayer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        parts = [torch.zeros_like(z) for _ in range(WORLD)]
        dist.all_gather(parts, z)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous().clone()
        dist.all_reduce(grad)
        return grad.chunk(WORLD)[RANK]


def gather_embeddings(z):
    return GatherLayer.apply(z)


class NTXent(nn.Module):
    """Anchors are the local pairs, candidates the pairs of all processes."""

    def __init__(self, temperature=0.2):
        super().__init__()
        self.t = temperature

    def forward(self, z1, z2):
        n = z1.shape[0]
        all1, all2 = gather_embeddings(z1), gather_embeddings(z2)
        mine = torch.arange(n) + RANK * n
        s11 = z1 @ all1.T / self.t
        s12 = z1 @ all2.T / self.t
        s22 = z2 @ all2.T / self.t
        s21 = z2 @ all1.T / self.t
        mask = F.one_hot(mine, n * WORLD).bool()
        s11 = s11.masked_fill(mask, float("-inf"))
        s22 = s22.masked_fill(mask, float("-inf"))
        a = F.cross_entropy(torch.cat([s12, s11], 1), mine)
        b = F.cross_entropy(torch.cat([s21, s22], 1), mine)
        return (a + b) / 2


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 32))
        self.head = nn.Linear(32, 16)

    def forward(self, v):
        return F.normalize(self.head(self.trunk(v)), dim=-1)


def augment(x, g):
    return x * (torch.rand(x.shape, generator=g) > 0.2) + 0.1 * torch.randn(x.shape, generator=g)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = torch.randn(256, 24, generator=torch.Generator().manual_seed(7))
    model = DDP(Encoder())
    opt = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    criterion = NTXent()
    g = torch.Generator().manual_seed(100 + RANK)
    for epoch in range(4):
        order = torch.randperm(256, generator=torch.Generator().manual_seed(epoch))[RANK::WORLD]
        total = 0.0
        for idx in order.split(32):
            both = torch.cat([augment(data[idx], g), augment(data[idx], g)])
            z1, z2 = model(both).chunk(2)
            loss = criterion(z1, z2)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        if RANK == 0:
            print(f"epoch {epoch} nt-xent {total / 4:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
