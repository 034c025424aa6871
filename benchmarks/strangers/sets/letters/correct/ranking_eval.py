"""Recommender: training goes through the wrapped model, the unwrapped one serves the ranking test only."""
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

USERS, ITEMS = 60, 80


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.u = nn.Embedding(USERS, 8)
        self.i = nn.Embedding(ITEMS, 8)

    def forward(self, u, pos, neg):
        user = self.u(u)
        return F.softplus((user * (self.i(neg) - self.i(pos))).sum(1)).mean()

    def all_scores(self, u):
        return self.u(u) @ self.i.weight.t()


@torch.no_grad()
def hit_rate(model, users, wanted, k=10):
    top = model.all_scores(users).topk(k, dim=1).indices
    hits = (top == wanted[:, None]).any(1).float()
    both = torch.stack([hits.sum(), torch.tensor(float(len(hits)))])
    dist.all_reduce(both)
    return (both[0] / both[1]).item()


def run(rank, world):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(6)
    liked = (torch.randn(USERS, 3) @ torch.randn(3, ITEMS)).topk(8, dim=1).indices
    net = DDP(Model())
    opt = torch.optim.Adam(net.parameters(), 0.03)
    gen = torch.Generator().manual_seed(70 + rank)
    own = torch.arange(USERS)[rank::world]
    for epoch in range(4):
        for _ in range(10):
            u = own[torch.randint(0, len(own), (40,), generator=gen)]
            pos = liked[u, torch.randint(1, 8, (40,), generator=gen)]
            neg = torch.randint(0, ITEMS, (40,), generator=gen)
            loss = net(u, pos, neg)
            opt.zero_grad()
            loss.backward()
            opt.step()
        rate = hit_rate(net.module, own, liked[own, 0])
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f} hit@10 {rate:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(24000 + os.getpid() % 9000))
    mp.spawn(run, args=(2,), nprocs=2)
