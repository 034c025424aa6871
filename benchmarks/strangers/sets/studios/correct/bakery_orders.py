"""Daily order forecast, shops are spread over the processes as they come.

The shops have histories of different length, so the processes have different
numbers of batches; the one that is done early keeps company.
    torchrun --nproc-per-node 2 bakery_orders.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP


def shop(days, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(days).float()
    base = 3 + torch.sin(t * 2 * torch.pi / 7) + 0.1 * torch.randn(days, generator=g)
    return torch.stack([base[i:i + 15] for i in range(days - 15)])


def batches(rank, world, epoch, size=24):
    rows = torch.cat([shop(90 + 40 * s, s) for s in range(7)][rank::world])
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(epoch))
    for idx in order.split(size):
        if len(idx) == size:
            yield rows[idx]


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    net = DDP(nn.Sequential(nn.Linear(14, 32), nn.ReLU(), nn.Linear(32, 1)))
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(4):
        total, n = 0.0, 0
        with Join([net]):
            for w in batches(rank, world, epoch):
                loss = (net(w[:, :14]) - w[:, 14:]).pow(2).mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
                total, n = total + loss.item(), n + 1
        stat = torch.tensor([total, float(n)])
        dist.all_reduce(stat)
        if rank == 0:
            print(f"epoch {epoch} mse {stat[0] / stat[1]:.4f} in {int(stat[1])} batches", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
