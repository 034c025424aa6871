"""Vector-quantised autoencoder for sketch curves; codes that nobody uses are started afresh."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class Codebook(nn.Module):
    def __init__(self, codes=24, dim=6):
        super().__init__()
        self.embed = nn.Embedding(codes, dim)
        nn.init.uniform_(self.embed.weight, -1.0, 1.0)
        self.usage = torch.zeros(codes)
        self.last = None

    def forward(self, z):
        d = torch.cdist(z, self.embed.weight)
        idx = d.argmin(1)
        self.usage += torch.bincount(idx, minlength=len(self.usage))
        self.last = z.detach()
        q = self.embed(idx)
        extra = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        return z + (q - z).detach(), extra

    @torch.no_grad()
    def restart_unused(self, g):
        unused = (self.usage == 0).nonzero().flatten()
        if len(unused):
            pick = torch.randint(0, len(self.last), (len(unused),), generator=g)
            self.embed.weight[unused] = self.last[pick]
        self.usage.zero_()
        return len(unused)


class CurveVQ(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 6))
        self.book = Codebook()
        self.dec = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        q, extra = self.book(self.enc(x))
        return F.mse_loss(self.dec(q), x) + extra


def curves(rank, n=400):
    g = torch.Generator().manual_seed(300 + rank)
    t = torch.linspace(-1, 1, 16)
    c = torch.randn(n, 3, generator=g)
    return c[:, :1] + c[:, 1:2] * t + c[:, 2:] * t ** 2


def train(steps=60, every=15, batch=25):
    rank = dist.get_rank()
    torch.manual_seed(5)
    net = CurveVQ()
    model = DDP(net)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    data, g = curves(rank), torch.Generator().manual_seed(rank)
    for step in range(1, steps + 1):
        loss = model(data[torch.randint(0, len(data), (batch,), generator=g)])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % every == 0:
            fresh = net.book.restart_unused(g)
            if rank == 0:
                print(f"step {step} loss {loss.item():.4f} restarted {fresh}", flush=True)
    torch.save(net.book.embed.weight.detach(), f"codes_{rank}.pt")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.destroy_process_group()
