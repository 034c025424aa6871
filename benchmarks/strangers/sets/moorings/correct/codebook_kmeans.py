"""Vector-quantised features: the codebook starts from a k-means over all workers, which runs until the centers rest."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

K, DIM = 8, 6


def kmeans(x, iters=50, tol=1e-3):
    start = x[:K].clone()
    dist.broadcast(start, src=0)
    centers = start
    for it in range(iters):
        assign = torch.cdist(x, centers).argmin(1)
        onehot = F.one_hot(assign, K).float()
        packed = torch.cat([onehot.t() @ x, onehot.sum(0).unsqueeze(1)], 1)
        dist.all_reduce(packed)
        sums, counts = packed[:, :DIM], packed[:, DIM:]
        new = torch.where(counts > 0, sums / counts.clamp(min=1), centers)
        shift = (new - centers).norm()
        centers = new
        if shift < tol:
            break
    return centers, it + 1


class Quantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(12, DIM), nn.Linear(DIM, 12)
        self.code = nn.Parameter(torch.zeros(K, DIM))

    def forward(self, x):
        z = self.enc(x)
        q = self.code[torch.cdist(z, self.code).argmin(1)]
        st = z + (q - z).detach()
        return F.mse_loss(self.dec(st), x) + F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach()) + 0 * self.code.sum()


def main():
    rank = int(os.environ["RANK"])
    torch.manual_seed(0)
    centers = torch.randn(K, 12)
    gen = torch.Generator().manual_seed(10 + rank)
    x = centers[torch.randint(0, K, (200 + 30 * rank,), generator=gen)]
    x = x + 0.2 * torch.randn(x.shape, generator=gen)
    net = Quantizer()
    with torch.no_grad():
        code, rounds = kmeans(net.enc(x))
        net.code.copy_(code)
    model = DDP(net)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(50):
        idx = torch.randint(0, len(x), (32,), generator=gen)
        loss = model(x[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if rank == 0:
        print(f"k-means took {rounds} rounds, loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
