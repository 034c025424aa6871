"""Open-set face embeddings with class centers split over the workers: every sample's embedding goes to the worker that
owns its identity, which keeps the running centers; the encoder itself is data-parallel."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

IDS = 24
DIM = 16


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, 48), nn.PReLU(), nn.Linear(48, DIM))
        self.proxy = nn.Parameter(torch.randn(IDS, DIM) * 0.1)

    def forward(self, x):
        e = F.normalize(self.net(x), dim=1)
        return e, 8 * e @ F.normalize(self.proxy, dim=1).t()


class CenterShard:
    """Running centers of the identities rank, rank + world, rank + 2 * world, ..."""

    def __init__(self, rank, world, momentum=0.9):
        self.rank, self.world, self.momentum = rank, world, momentum
        self.centers = torch.zeros(len(range(rank, IDS, world)), DIM)

    def exchange(self, emb, ident):
        owner = ident % self.world
        order = owner.argsort(stable=True)
        emb, ident = emb[order].contiguous(), ident[order].contiguous()
        send = torch.bincount(owner, minlength=self.world)
        recv = send.clone()
        got_emb = emb.new_empty(int(recv.sum()), DIM)
        got_ident = ident.new_empty(int(recv.sum()))
        dist.all_to_all_single(got_emb, emb, recv.tolist(), send.tolist())
        dist.all_to_all_single(got_ident, ident, recv.tolist(), send.tolist())
        return got_emb, got_ident

    def update(self, emb, ident):
        emb, ident = self.exchange(emb, ident)
        for i in ident.unique().tolist():
            row = i // self.world
            mean = emb[ident == i].mean(0)
            self.centers[row] = self.momentum * self.centers[row] + (1 - self.momentum) * mean

    def spread(self):
        total = torch.stack([self.centers.norm(dim=1).sum(), torch.tensor(float(len(self.centers)))])
        dist.all_reduce(total)
        return (total[0] / total[1]).item()


def faces(n, gen):
    ident = torch.randint(0, IDS, (n,), generator=gen)
    base = torch.randn(IDS, 20, generator=torch.Generator().manual_seed(99))
    return base[ident] + 0.4 * torch.randn(n, 20, generator=gen), ident


def main(steps=60, batch=32):
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(0)
    model = DDP(Encoder())
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    shard = CenterShard(rank, world)
    gen = torch.Generator().manual_seed(31 + rank)
    for step in range(steps):
        x, ident = faces(batch, gen)
        emb, logits = model(x)
        loss = F.cross_entropy(logits, ident)
        opt.zero_grad()
        loss.backward()
        opt.step()
        shard.update(emb.detach(), ident)
        if step % 20 == 19:
            spread = shard.spread()
            if rank == 0:
                print(f"step {step} loss {loss.item():.3f} mean center norm {spread:.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
