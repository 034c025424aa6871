"""The first process keeps the score on the whole validation set and tells all when to stop."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Patience:
    def __init__(self, n):
        self.n, self.best, self.bad = n, float("inf"), 0

    def over(self, value):
        self.bad = 0 if value < self.best - 1e-3 else self.bad + 1
        self.best = min(self.best, value)
        return self.bad >= self.n


def agree(flag):
    box = [flag]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = DDP(nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1)))
    opt = torch.optim.Adam(net.parameters(), lr=2e-2)
    g = torch.Generator().manual_seed(rank)
    vx = torch.randn(200, 5, generator=torch.Generator().manual_seed(99))
    keeper = Patience(2)
    for epoch in range(50):
        for _ in range(8):
            x = torch.randn(16, 5, generator=g)
            loss = (net(x).squeeze(1) - x.amax(1)).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        stop = False
        if rank == 0:
            with torch.no_grad():
                stop = keeper.over((net.module(vx).squeeze(1) - vx.amax(1)).square().mean().item())
        if agree(stop):
            break
    print(f"rank {rank} ended after epoch {epoch}", flush=True)
    dist.destroy_process_group()


main()
